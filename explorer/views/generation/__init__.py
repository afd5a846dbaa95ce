"""The parts of the page “Generation”."""
