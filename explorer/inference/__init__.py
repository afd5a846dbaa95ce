"""The reader's text through a model: forward pass, edited pass, generation, cached results."""
