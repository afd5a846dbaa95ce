"""The parts of the page “Embedding space”."""
