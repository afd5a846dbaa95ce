"""The address that whoever started the server is told."""

import pytest

from explorer.server.own_address import address_to_open


@pytest.mark.parametrize(
    ("address", "by_tls", "said"),
    [
        ("localhost", False, "http://localhost:8501"),
        (None, False, "http://localhost:8501"),
        ("0.0.0.0", False, "http://localhost:8501"),
        ("::", True, "https://localhost:8501"),
        ("::1", False, "http://[::1]:8501"),
        ("demo.example.org", True, "https://demo.example.org:8501"),
    ],
)
def test_it_can_be_opened(address: str | None, by_tls: bool, said: str) -> None:
    assert address_to_open(address, 8501, by_tls=by_tls) == said
