"""Runs are named by what tells them apart, and by how they depart from the defaults."""

from explorer.runs.differing import changes, what_differs
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS


def spec(name: str = "induction", **settings: object) -> RunSpec:
    return spec_of(TASKS[name], settings)


def test_a_name_has_what_differs_and_nothing_else() -> None:
    rates = [spec(lr=0.001, layers=1), spec(lr=0.003, layers=1)]
    assert what_differs(rates) == ["lr 0.001", "lr 0.003"]
    several = [spec(layers=1, warmup=0), spec(layers=2, warmup=50), spec(layers=2, warmup=0)]
    assert what_differs(several) == [
        "1 layer, no warm-up",
        "2 layers, warm-up 50",
        "2 layers, no warm-up",
    ]
    assert what_differs([spec(positions="none"), spec(positions="rotary")]) == [
        "no positions",
        "rotary positions",
    ]
    assert what_differs([spec(norm_position="pre"), spec(norm_position="post")]) == [
        "pre-norm",
        "post-norm",
    ]
    assert what_differs([spec(heads=2), spec(heads=4)]) == ["2 heads", "4 heads"], "not d_head too"


def test_equal_runs_are_told_apart_by_their_titles() -> None:
    same = [spec(), spec(), spec(seed=3)]
    titles = ["induction-1", "induction-2", "induction-3"]
    assert what_differs(same[:2], titles[:2]) == titles[:2]
    assert what_differs(same, titles) == [
        "data seed 0 · induction-1",
        "data seed 0 · induction-2",
        "data seed 3",
    ]
    assert len(set(what_differs(same))) == 3


def test_runs_of_several_tasks_are_named_by_their_tasks() -> None:
    assert what_differs([spec("sort"), spec("reverse", steps=7)])[0] == "sort"


def test_changes_say_what_was_and_what_is() -> None:
    base = spec(lr=0.001, warmup=0, layers=1, norm_position="pre", dropout=0.1)
    other = spec(lr=0.003, warmup=50, layers=2, norm_position="post", dropout=0.0)
    assert set(changes(other, base)) == {
        "1 → 2 layers",
        "pre-norm → post-norm",
        "no dropout",
        "lr 0.001 → 0.003",
        "+ warm-up 50",
    }
    assert changes(spec()) == []
    assert changes(spec(lr=0.5)) == [f"lr {TASKS['induction'].training.lr:g} → 0.5"]
