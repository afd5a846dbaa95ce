"""The Administration page: who may see it, and what this server does and stores for its readers."""
