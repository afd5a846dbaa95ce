"""Training runs: their folders, the worker that trains, and the cluster that runs workers."""
