"""The server around the app: its door in plain ASGI, before Streamlit sees anything, and its state.

`app.py` puts the parts together; each is a class that takes the next application, so a test calls
it with a dictionary. What they ask of Streamlit they ask `explorer.app.streamlit_patches`.
"""
