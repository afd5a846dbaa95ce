"""The app behind the pages: one room for each duty, one folder of views for each page."""
