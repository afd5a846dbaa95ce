"""Tables and tensors in, charts out, over one theme."""
