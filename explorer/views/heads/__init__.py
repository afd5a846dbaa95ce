"""The parts of the page “Heads”."""
