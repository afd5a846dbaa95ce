"""The parts of the page “Query and key”."""
