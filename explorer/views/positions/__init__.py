"""The parts of the page “Positions”."""
