"""The server around the app: middleware in plain ASGI before Streamlit, and what runs beside it.

`app.py` puts the parts together; each is a class that takes the next application, so a test calls
it with a dictionary. They reach Streamlit through `explorer.app.streamlit_patches` only.
"""
