"""The frame of every page: shell, sidebar, what is chosen, the address, progress and throttling."""
