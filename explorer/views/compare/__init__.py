"""The parts of the page “Compare”."""
