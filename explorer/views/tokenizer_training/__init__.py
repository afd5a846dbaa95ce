"""The parts of the page “Training a tokenizer”."""
