"""The models that can be opened: shipped, trained, brought; their descriptions and parameters."""


class ModelError(ValueError):
    """A model cannot be found, fetched, kept or opened; the message is one sentence."""


def in_a_sentence(error: BaseException) -> str:
    """An error as a sentence, without the path on this machine that an OSError names."""
    if not isinstance(error, OSError):
        return str(error)
    return f"Reading or writing it failed: {(error.strerror or type(error).__name__).lower()}."
