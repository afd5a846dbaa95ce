"""What the page Training history computes and draws."""
