"""Branches: every one is in the address, nothing is written twice, and every step is undone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.inference.branches import MAX_NODES, Branches, parse_branches

KNOWN, ENDS, ROOM = 30, {29}, 12
TOKENS = st.lists(st.integers(0, 28), min_size=1, max_size=3)
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["write", "force"]), TOKENS),
    st.tuples(st.just("stand"), st.integers(0, 12)),
    st.tuples(st.sampled_from(["undo", "redo"]), st.none()),
)


def played(actions: list[tuple[str, object]]) -> Branches:
    found = Branches()
    for name, value in actions:
        if isinstance(value, list):
            longer = found.append(value, forced=name == "force")
            assert longer.path() == (*found.path(), *value)
            found = longer if len(longer.path()) <= ROOM else found
        elif isinstance(value, int):
            found = found.go_to(value)
        else:
            found = found.undo() if name == "undo" else found.redo()
    return found


@given(st.lists(ACTIONS, max_size=12))
def test_the_address_holds_everything_once(actions: list[tuple[str, object]]) -> None:
    found = played(actions)
    assert parse_branches(str(found), KNOWN, ENDS, ROOM) == found
    assert 0 <= found.at < len(found.nodes)
    assert list(found.depths) == [len(found.nodes_to(node)) for node in range(len(found.nodes))]
    places = {(n.parent, n.token): place for place, n in enumerate(found.nodes) if place}
    assert len(places) == len(found.nodes) - 1
    for at, children in enumerate(found.children):
        for token, child in children.items():
            assert places.pop((at, token)) == child
    assert not places
    assert not found.done or found.before.nodes == found.undo().nodes


def test_a_forced_token_makes_a_branch_and_every_step_is_taken_back() -> None:
    appended = Branches().append([5, 6, 7], forced=False)
    found = branched = appended.go_to(1).append([9], forced=True)
    assert [branched.path(leaf) for leaf in branched.leaves()] == [(5, 6, 7), (5, 9)]
    assert str(branched) == "0d5-6-7.1.1f9"
    paths = []
    for _ in range(4):
        paths.append(found.path())
        found = found.undo()
    assert paths == [(5, 9), (5,), (5, 6, 7), ()]
    assert found.undo() == found
    for _ in range(4):
        found = found.redo()
    assert found == branched
    elsewhere = appended.go_to(1).append([9], forced=True, behind=0)
    assert (str(elsewhere), elsewhere.undo().path()) == ("0d5-6-7.1.0f9", (5,))
    assert appended.undo().go_to(0).redo() == appended, "one may look around before making it again"


def test_of_many_ways_back_the_oldest_are_forgotten() -> None:
    found = Branches().append([5, 6], forced=False)
    for place in range(2 * MAX_NODES):
        found = found.go_to(place % 2)
    assert len(found.actions) == MAX_NODES + 1
    assert found.path() == (5,)
    assert parse_branches(str(found), KNOWN, ENDS, ROOM) == found
    assert parse_branches(f"0d5{'.0' * (MAX_NODES + 1)}", KNOWN, ENDS, ROOM) is None
    for _ in range(MAX_NODES):
        found = found.undo()
    assert found.path() == (5, 6)
    moved = found.go_to(1)
    assert moved.path() == (5,), "one can still go elsewhere where all the ways back are undone"
    assert parse_branches(str(moved), KNOWN, ENDS, ROOM) == moved
    assert moved.redo().at == 0, "the way that would have been made again first is still there"
    assert len(moved.actions) == MAX_NODES + 1


def test_what_stands_there_is_followed_and_not_written_again() -> None:
    appended = Branches().append([5, 6, 7], forced=False)
    assert appended.append([5, 6], forced=True, behind=0) == appended.go_to(2)
    assert appended.go_to(0).append([5, 8], forced=True).path() == (5, 8)
    assert appended.go_to(99) == appended
    forked = appended.append([9], forced=True, behind=1)
    assert forked.line == [1, 4]
    assert forked.go_to(2).line == [1, 2, 3]
    assert forked.go_to(1).line == [1, 4], "on by what was appended last"
    full = Branches().append(range(MAX_NODES), forced=False).go_to(0)
    assert full.append([0, 1, 2], forced=True) == full.go_to(3), "it needs no room"
    assert full.fitting([0, 1, 2, 9], 0) == 3


def test_what_does_not_fit_or_is_no_address_is_refused_and_never_cut() -> None:
    found = Branches().append(range(MAX_NODES), forced=False)
    assert (len(found.nodes), found.room) == (MAX_NODES + 1, 0)
    with pytest.raises(ValueError, match="so 0 more fit: undo or clear"):
        found.append([1], forced=True)
    almost = Branches().append(range(MAX_NODES - 2), forced=False)
    with pytest.raises(ValueError, match="so 2 more fit"):
        almost.append([1, 2, 3], forced=True)
    assert almost.fitting([1, 2, 3], almost.at) == 2
    assert almost.append([1, 2], forced=True).room == 0
    malformed = "x 0d 1d5 0d5_1 0d5. 0x5 ~ 0d-1 <b> 0d99999999".split()
    strangers = "0d5.9f3 0d30 0d29-3 0d5.2 0d5~1d 0d5~9d1 0d5.0d5".split()
    for text in [*malformed, *strangers, f"0d1{'-1' * ROOM}"]:
        assert parse_branches(text, KNOWN, ENDS, ROOM) is None, text
