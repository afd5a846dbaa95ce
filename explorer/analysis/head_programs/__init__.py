"""Small programs over tokens that describe what a head attends to."""
