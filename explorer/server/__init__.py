"""The server around the app: its door in plain ASGI, before Streamlit sees anything, and its state.

`app.py` puts the parts together; each is a class that takes the next application. None knows
Streamlit, so a test calls them with a dictionary.
"""
