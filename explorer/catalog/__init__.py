"""Which models can be opened: shipped, trained, brought; their descriptions and parameters."""
