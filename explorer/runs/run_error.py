"""What is raised where a run cannot be made or read."""

from explorer.catalog import in_a_sentence


class RunError(ValueError):
    """A run cannot be made or read; the message is one sentence."""

    @classmethod
    def of(cls, error: OSError, sentence: str) -> "RunError":
        """That something could not be done, and why; never where on this machine."""
        return cls(f"{sentence}. {in_a_sentence(error)}")
