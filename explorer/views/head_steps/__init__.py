"""The parts of the page “Head, step by step”."""
