"""What each page computes for its screen and draws: one folder for each page."""
