"""The parts of the page “Tokens”."""
