"""Edits as text in an address: the same again, and nothing else is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import edits
from explorer.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    History,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceToken,
    from_address,
    read_one,
    to_address,
    written,
)

number = st.integers(0, 9_999_999)
some = st.none() | number
part = st.sampled_from(sorted(edits.PART_LETTERS))
to = st.sampled_from(sorted(edits.TO))
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=edits.LONGEST_TEXT)
any_edit = st.one_of(
    st.builds(AblateHead, part, number, number, to),
    st.builds(AblateAttention, part, number, to),
    st.builds(AblateMlp, part, number, to),
    st.builds(CutEdge, part, number, some, number, number, to),
    st.builds(PresetMask, part, some, st.sampled_from(sorted(edits.PRESETS)), number),
    st.builds(MaskCell, part, some, number, number, st.booleans()),
    st.builds(HideKey, part, some, number),
    st.builds(ReplaceToken, part, number, number),
    st.builds(Patch, part, number, some, number, text),
)


@given(any_edit)
def test_an_edit_is_read_as_it_was_written(edit: Edit) -> None:
    assert read_one(written(edit)) == edit
    assert set(written(edit)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    ), "nothing that an address would have to escape"


@given(st.text(max_size=60) | st.from_regex(r"[hafxmcktp](\.[a-z0-9]{1,3}){0,7}", fullmatch=True))
def test_only_what_would_be_written_is_read(text: str) -> None:
    try:
        edit = read_one(text)
    except ValueError:
        return
    assert written(edit) == text


@given(st.lists(st.builds(AblateHead, part, st.integers(0, 99), st.integers(0, 99), to)), number)
def test_a_history_goes_through_an_address(made: list[Edit], done: int) -> None:
    history = History(tuple(made[: edits.MOST]), min(done, len(made[: edits.MOST])))
    assert from_address(to_address(history)) == (history, ())


@pytest.mark.parametrize(
    "bad",
    [
        "h.d.a.0.z",  # every layer is no place for one head
        "h.d.00.0.z",
        "h.d.0.0",
        "h.d.0.0.z.z",
        "h.q.0.0.z",
        "q.d.0",
        "c.d.a.1.2.2",
        "m.d.a.x.1",
        "p.d.0.a.1.!!",
        "p.d.0.a.1._w",  # no text in this encoding
        "",
    ],
)
def test_what_is_no_edit_is_dropped_and_said(bad: str) -> None:
    history, notes = from_address(f"1.3~h.d.0.1.z~{bad}~k.d.a.4")
    assert history == History((AblateHead("decoder.self_attn", 0, 1), HideKey(D, None, 4)), 2)
    assert len(notes) == 1
    assert "no edit" in notes[0]


D = "decoder.self_attn"


@pytest.mark.parametrize("text", ["x", "2.0~h.d.0.1.z", "1~h.d.0.1.z", "1.-1~h.d.0.1.z", "~~~"])
def test_another_language_is_refused_whole(text: str) -> None:
    history, notes = from_address(text)
    assert history == History()
    assert "not a list of edits" in notes[0]


def test_an_address_that_is_too_long_is_refused() -> None:
    history, notes = from_address("1.1" + "~h.d.0.1.z" * 200)
    assert history == History()
    assert "at most 1,500" in notes[0]
    full = History()
    while full.has_room_for(AblateHead(D, 10, 11)):
        full = full.add(AblateHead(D, 10, 11))
    assert len(full.edits) == edits.MOST
    assert not full.has_room_for(AblateHead(D, 10, 11))


def test_undo_redo_remove_and_clear() -> None:
    first, second, third = (AblateHead(D, 0, head) for head in range(3))
    history = History().add(first).add(second).add(third)
    assert history.undo().made == (first, second)
    assert history.undo().redo() == history
    assert history.undo().add(first).edits == (first, second, first), "what was undone is gone"
    assert history.without(0).made == (second, third)
    assert history.undo().without(2) == History((first, second), 2)
    assert history.clear().made == ()
    assert history.clear().redo().made == (first,)
    assert History().undo() == History() == History().redo()


def test_a_cell_of_a_mask_is_set_once() -> None:
    may, may_not = MaskCell(D, 0, 2, 1, True), MaskCell(D, 0, 2, 1, False)
    between = PresetMask(D, 0, "none")
    history = History().add(may_not).add(between)
    assert history.add(may).made == (between, may)
    assert history.add(may_not).made == (between, may_not), "an equal one is not added again"
    assert history.without_cell(may).made == (between,)
    elsewhere = (MaskCell(D, None, 2, 1, True), MaskCell(D, 0, 2, 2, True), HideKey(D, 0, 1))
    for other in elsewhere:
        assert history.add(other).made == (may_not, between, other)
    full = History(tuple(MaskCell(D, 0, 0, key, False) for key in range(edits.MOST)), edits.MOST)
    assert full.has_room_for(MaskCell(D, 0, 0, 7, True))
    assert not full.has_room_for(may)


def test_only_what_does_not_fit_goes_and_what_was_undone_stays() -> None:
    first, second, third, fourth = (AblateHead(D, 0, head) for head in range(4))
    history = History((first, second, third, fourth), 2)
    assert history.with_only((first, second)) == history
    assert history.with_only((second,)) == History((second, third, fourth), 1)
    assert history.with_only(()).redo().made == (third,)
