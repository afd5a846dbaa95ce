"""Which models can be opened: shipped, trained, brought; their descriptions and parameters."""


class ModelError(ValueError):
    """A model cannot be found, fetched, kept or opened; the message is one sentence."""
