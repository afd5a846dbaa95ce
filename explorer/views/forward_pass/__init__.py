"""The parts of the page “Forward pass”."""
