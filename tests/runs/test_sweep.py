"""A sweep: every combination of settings, taken or refused as a whole, named by what differs."""

from pathlib import Path
from typing import Any

import pytest

from explorer.catalog.shipped import SHIPPED
from explorer.runs.finetuning import task_for
from explorer.runs.run import Run, all_runs, open_folder
from explorer.runs.run_differences import changes, what_differs
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunError, RunSpec
from explorer.runs.sweep import RACES, by_sweep, grid, notes_of, title_of
from explorer.system import limits
from explorer.tasks import TASKS
from tests.tiny import tiny_run


def test_a_grid_has_every_combination_once() -> None:
    values: dict[str, list[Any]] = {"lr": [1e-3, 3e-3, 1e-3], "layers": [1, 2], "seed": []}
    specs = grid(TASKS["reverse"], values, {"steps": 7})
    layers = ("1 layer", "2 layers")
    every = [f"{each}, lr {rate}" for rate in (0.001, 0.003) for each in layers]
    assert what_differs(specs) == every
    assert {spec.training.steps for spec in specs} == {7}
    assert title_of(values) == "lr 0.001, 0.003 × layers 1, 2"


def test_what_makes_no_sweep_is_one_sentence() -> None:
    task = TASKS["reverse"]
    assert len(grid(task, {"seed": range(32)})) == 32
    with pytest.raises(RunError, match="33 runs; the limit is 32 runs"):
        grid(task, {"seed": range(33)})
    with pytest.raises(RunError, match="the limit is 32 runs"):
        grid(task, {name: range(1000) for name in ("seed", "weights_seed", "warmup", "steps")})
    too_few: list[dict[str, list[float]]] = [{}, {"lr": [0.1]}, {"lr": []}]
    for values in too_few:
        with pytest.raises(RunError, match="at least two values of one setting"):
            grid(task, values)
    with pytest.raises(RunError, match="d_model 64 is not divisible by n_heads 3"):
        grid(task, {"heads": [2, 3]})


def test_runs_from_a_trained_model_differ_in_how_it_is_trained() -> None:
    """A whole model has no α, so it is trained once."""
    parent = open_folder(SHIPPED / "induction")
    task = task_for(parent, "induction")
    specs = grid(task, {"lora_rank": [0, 2, 4], "lora_alpha": [4.0, 8.0]}, parent=parent)
    assert what_differs(specs) == [
        "lr 0.0003, whole model",
        *(f"lr 0.001, LoRA rank {rank}, LoRA α {alpha}" for rank in (2, 4) for alpha in (4, 8)),
    ]
    assert {spec.parent for spec in specs} == {"induction"}
    assert title_of({"lora_rank": [0, 2]}) == "LoRA rank 0, 2"
    ranks = grid(task, {"lora_rank": [2, 4]}, parent=parent)
    assert what_differs(ranks) == ["LoRA rank 2", "LoRA rank 4"]
    no_difference: list[dict[str, list[Any]]] = [
        {"lora_rank": [0], "lora_alpha": [4.0, 8.0]},
        {"weights_seed": [1, 2]},
    ]
    for values in no_difference:
        with pytest.raises(RunError, match="at least two values of one setting"):
            grid(task, values, parent=parent)
    with pytest.raises(RunError, match="Layers is that of the model to start from: leave it out"):
        grid(task, {"layers": [1, 2]}, parent=parent)
    with pytest.raises(RunError, match="LoRA adapts a model that was trained before: choose one"):
        grid(task, {"lora_rank": [1, 2]})


def test_the_races_that_are_ready_can_be_run_and_differ_by_one_setting() -> None:
    for race in RACES:
        names = what_differs(specs := race.specs)
        assert limits.SWEEP_RUNS.public >= len(specs) == (len(race.twins) or 2)
        assert all("," not in name for name in names), race.title
    assert names == ["usual", "sink logit", "gated attention"]
    off = what_differs([spec("backcopy", steps=7, **twin) for twin in RACES[-1].twins])
    assert off == ["no sink logit, no gated attention", *names[1:]], "not as usual"


def test_runs_are_found_by_the_key_of_their_sweep(tmp_path: Path) -> None:
    runs = [tiny_run(tmp_path) for _ in range(4)]
    mine, other = notes_of("mine"), notes_of("other")
    for run, notes in zip(runs, (mine, mine, None, other), strict=True):
        if notes:
            run.note(notes)
    found = by_sweep(all_runs(tmp_path))
    assert list(found) == [other.sweep, mine.sweep]
    assert [each.name for each in found[mine.sweep]] == [run.name for run in runs[:2]]
    assert isinstance(found[other.sweep][0], Run)


def spec(name: str = "induction", **settings: object) -> RunSpec:
    return spec_of(TASKS[name], settings)


def test_a_name_has_what_differs_and_nothing_else() -> None:
    for specs, names in (
        ([spec(lr=0.001, layers=1), spec(lr=0.003, layers=1)], ["lr 0.001", "lr 0.003"]),
        (
            [spec(layers=1, warmup=0), spec(layers=2, warmup=50), spec(layers=2, warmup=0)],
            ["1 layer, no warm-up", "2 layers, warm-up 50", "2 layers, no warm-up"],
        ),
        (
            [spec(positions=each) for each in ("none", "rotary")],
            ["no positions", "rotary positions"],
        ),
        ([spec(norm_position=each) for each in ("pre", "post")], ["pre-norm", "post-norm"]),
        ([spec(heads=2), spec(heads=4)], ["2 heads", "4 heads"]),  # not d_head too
    ):
        assert what_differs(specs) == names
    assert what_differs([spec("sort"), spec("reverse", steps=7)])[0] == "sort"


def test_equal_runs_are_told_apart_by_their_titles() -> None:
    same = [spec(), spec(), spec(seed=3)]
    titles = ["induction-1", "induction-2", "induction-3"]
    assert what_differs(same[:2], titles[:2]) == titles[:2]
    names = [*(f"data seed 0 · {title}" for title in titles[:2]), "data seed 3"]
    assert what_differs(same, titles) == names
    assert len(set(what_differs(same))) == 3


def test_changes_say_what_was_and_what_is() -> None:
    other = spec(lr=0.001, warmup=0, layers=1, norm_position="post", dropout=0.1)
    words = "+ dropout 0.1, 2 → 1 layer, lr 0.003 → 0.001, no warm-up, pre-norm → post-norm"
    assert sorted(changes(other)) == words.split(", ")
    assert changes(spec()) == []
