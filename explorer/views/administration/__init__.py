"""The Administration page: who may see it, what this server holds, and the runs of all readers."""
