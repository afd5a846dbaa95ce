"""Where the app is, for whoever started it."""

from __future__ import annotations

SETTINGS = ("server.address", "browser.serverAddress")
"""Streamlit's, that say what the server is called; EXPLORER_HOSTS adds others."""

ANYWHERE = {None, "", "0.0.0.0", "::"}  # noqa: S104


def address_to_open(address: str | None, port: int, *, by_tls: bool) -> str:
    """The address to open, which Streamlit would ask an outside host for.

    Of a server that listens everywhere it is that of this machine.
    """
    host = "localhost" if address is None or address in ANYWHERE else address
    return f"{'https' if by_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
