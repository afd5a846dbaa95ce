"""The parts of the pages on the input: tokens, embedding space, positions."""
