"""A training run is a folder; these files write it, read it and find the processes that train."""
