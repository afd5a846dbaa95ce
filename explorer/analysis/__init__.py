"""Tensors in, tensors out: what attention and weights are like, in numbers. No screen."""
