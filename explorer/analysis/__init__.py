"""What weights and attention are like, in numbers: pure tensors, no screen."""
