"""Long labels lose their middle, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from explorer.text.labels import cut


@given(st.text(max_size=40), st.integers(1, 40))
def test_a_label_is_as_long_as_asked_and_keeps_both_ends(text: str, longest: int) -> None:
    shown = cut(text, longest)
    if len(text) <= longest:
        assert shown == text
        return
    assert len(shown) == longest
    front = longest // 2
    behind = longest - 1 - front
    assert shown == text[:front] + "…" + text[len(text) - behind :]
