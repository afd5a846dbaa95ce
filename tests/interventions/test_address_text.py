"""Edits as text in an address: the same again, and nothing else is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.interventions import address_text, edits

D = "decoder.self_attn"
number = st.integers(0, 9_999_999)
some = st.none() | number
part = st.sampled_from(sorted(address_text.PART_LETTERS))
to = st.sampled_from(sorted(address_text.TO_LETTERS))
text = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=address_text.MAX_PATCH_TEXT
)
strength = st.floats(-address_text.MAX_STRENGTH, address_text.MAX_STRENGTH)
program = st.tuples(
    st.sampled_from(["first", "key is capital and self"]), st.sampled_from([0.25, 1])
)
mixture = st.lists(program, min_size=1, max_size=3).map(tuple)
any_edit = st.one_of(
    st.builds(edits.AblateHead, part, number, number, to),
    st.builds(edits.AblateAttention, part, number, to),
    st.builds(edits.AblateMlp, part, number, to),
    st.builds(edits.AblateNeuron, part, number, number, to),
    st.builds(edits.CutEdge, part, number, some, number, number, to),
    st.builds(
        edits.PresetMask, part, some, st.sampled_from(sorted(address_text.PRESET_LETTERS)), number
    ),
    st.builds(edits.MaskCell, part, some, number, number, st.booleans()),
    st.builds(edits.HideKey, part, some, number),
    st.builds(edits.ReplaceToken, part, number, number, st.just("") | text),
    st.builds(edits.Patch, part, number, some, number, text, some),
    st.builds(edits.Steer, part, number, some, strength, st.lists(text, min_size=1).map(tuple)),
    st.builds(edits.ReplaceByProgram, part, number, number, mixture),
)
PLAIN = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
"""What an address need not escape."""


@given(any_edit)
def test_an_edit_is_read_as_it_was_written(edit: edits.Intervention) -> None:
    assert address_text.edit_from_text(address_text.edit_to_text(edit)) == edit
    assert set(address_text.edit_to_text(edit)) <= PLAIN


@given(
    st.text(max_size=60) | st.from_regex(r"[hafnxmcktps](\.[a-z0-9_-]{1,3}){0,7}", fullmatch=True)
)
def test_only_what_would_be_written_is_read(text: str) -> None:
    try:
        edit = address_text.edit_from_text(text)
    except ValueError:
        return
    assert address_text.edit_to_text(edit) == text


@given(
    st.lists(st.builds(edits.AblateHead, part, st.integers(0, 99), st.integers(0, 99), to)), number
)
def test_a_history_goes_through_an_address(made: list[edits.Intervention], done: int) -> None:
    kept = tuple(made[: address_text.MAX_EDITS])
    history = edits.EditHistory(kept, min(done, len(kept)))
    assert address_text.from_address(address_text.to_address(history)) == (history, ())


NO_EDITS = [
    *"h.d.a.0.z h.d.00.0.z h.d.0.0 h.q.0.0.z q.d.0 m.d.a.x.1".split(),  # every layer for one head
    *"p.d.0.a.1.!! p.d.0.a.1._w".split(),  # no text in this encoding
    *"s.d.0.a.1.QQ.Qg s.d.0.a.1_0.QQ..Qg s.d.0.a.1_0. s.d.0.a.1_0".split(),  # without a fraction
    *"s.d.0.a.nan.QQ.Qg s.d.0.a.inf.QQ.Qg s.d.0.a.100_5.QQ.Qg s.d.0.a.01_0.QQ.Qg".split(),
    "",
]


def test_what_is_no_edit_is_dropped_and_what_is_no_list_is_refused_whole() -> None:
    good = edits.EditHistory((edits.AblateHead(D, 0, 1), edits.HideKey(D, None, 4)), 2)
    for bad in NO_EDITS:
        history, notes = address_text.from_address(f"1.3~h.d.0.1.z~{bad}~k.d.a.4")
        assert (history, len(notes)) == (good, 1)
        assert "not an intervention" in notes[0]
    for text in ["x", "2.0~h.d.0.1.z", "1~h.d.0.1.z", "1.-1~h.d.0.1.z", "~~~"]:
        history, notes = address_text.from_address(text)
        assert history == edits.EditHistory()
        assert "not a list of interventions" in notes[0]


def test_an_address_that_is_too_long_is_refused() -> None:
    history, notes = address_text.from_address("1.1" + "~h.d.0.1.z" * 200)
    assert history == edits.EditHistory()
    assert "at most 1,500" in notes[0]
    full = edits.EditHistory()
    for head in range(address_text.MAX_EDITS):
        assert address_text.has_room_for(full, edits.AblateHead(D, 10, head))
        full = full.add(edits.AblateHead(D, 10, head))
    assert not address_text.has_room_for(full, edits.AblateHead(D, 10, address_text.MAX_EDITS))
    other = edits.AblateHead(D, 10, 1, "mean")
    assert address_text.has_room_for(full, other), "it takes the place of another"


def test_undo_redo_remove_and_clear() -> None:
    first, second, third = (edits.AblateHead(D, 0, head) for head in range(3))
    history = edits.EditHistory().add(first).add(second).add(third)
    assert history.undo().active == (first, second)
    assert history.undo().redo() == history
    assert history.undo().add(first).edits == (second, first), "what was undone is gone"
    assert history.remove(0).active == (second, third)
    assert history.undo().remove(2) == edits.EditHistory((first, second), 2)
    assert history.clear().active == ()
    assert history.clear().redo().active == (first,)
    assert edits.EditHistory().undo() == edits.EditHistory() == edits.EditHistory().redo()


MAY, MAY_NOT = edits.MaskCell(D, 0, 2, 1, True), edits.MaskCell(D, 0, 2, 1, False)
LOVE = ("love", "hate")
TWICE: list[tuple[edits.Intervention, edits.Intervention]] = [
    (edits.AblateHead(D, 0, 1), edits.AblateHead(D, 0, 1, "mean")),
    (edits.AblateAttention(D, 0), edits.AblateAttention(D, 0, "mean")),
    (edits.AblateMlp(D, 0), edits.AblateMlp(D, 0, "mean")),
    (edits.CutEdge(D, 0, None, 2, 1), edits.CutEdge(D, 0, None, 2, 1, "mean")),
    (edits.PresetMask(D, None, "window", 2), edits.PresetMask(D, None, "padding", 3)),
    (MAY_NOT, MAY),
    (edits.HideKey(D, 0, 1), edits.HideKey(D, 0, 1)),
    (edits.ReplaceToken(D, 1, 4), edits.ReplaceToken(D, 1, 5)),
    (edits.Patch(D, 0, 1, 2, "the hat"), edits.Patch(D, 0, 1, 2, "the cat")),
    (edits.Steer(D, 0, None, 2.0, LOVE), edits.Steer(D, 0, None, -0.5, LOVE)),
]
ELSEWHERE: list[tuple[edits.Intervention, edits.Intervention]] = [
    (MAY_NOT, edits.MaskCell(D, None, 2, 1, True)),
    (MAY_NOT, edits.HideKey(D, 0, 1)),
    (edits.AblateHead(D, 0, 1), edits.AblateHead(D, 1, 1)),
    (edits.AblateAttention(D, 0), edits.AblateMlp(D, 0)),
    (edits.CutEdge(D, 0, None, 2, 1), edits.CutEdge(D, 0, 3, 2, 1)),
    (edits.Patch(D, 0, None, 2, "the hat"), edits.Patch(D, 0, 1, 2, "the hat")),
    (edits.Steer(D, 0, None, 2.0, LOVE), edits.Steer(D, 0, None, 2.0, LOVE[::-1])),
]


def test_of_two_edits_of_the_same_thing_the_newer_counts(subtests: pytest.Subtests) -> None:
    for older, newer in TWICE:
        with subtests.test(older=older):
            between = edits.AblateHead(D, 7, 7)
            history = edits.EditHistory().add(older).add(between).add(newer)
            assert history == edits.EditHistory((between, newer), 2)
            assert history.without_target(older).active == (between,)
    for one, other in ELSEWHERE:
        with subtests.test(one=one, other=other):
            assert edits.EditHistory().add(one).add(other).active == (one, other)
