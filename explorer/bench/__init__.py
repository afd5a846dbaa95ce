"""The parts of the pages on which attention is looked at closely, and changed."""
