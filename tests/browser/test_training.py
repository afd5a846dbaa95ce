"""Training in the page, to the end, and through everything that may interrupt it."""
