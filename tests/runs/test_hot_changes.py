"""Settings that change while a run trains: taken on after a step, and again by a resumed run."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from explorer.runs.run import Run, create
from explorer.runs.spec import RunError
from explorer.runs.worker import advance
from tests.runs.test_worker import drive, end_equally
from tests.tiny import tiny_run, tiny_spec


def changed_at_three_and_seven(run: Run, steps: int) -> None:
    progress = advance(run.folder)
    for each in progress:
        if each.report.step == 3:
            run.change(lr=0.02, label_smoothing=0.1)
        elif each.report.step == 7:
            run.change(clip=0.5, evaluate_every=4)
        if each.report.step == steps:
            break
    progress.close()  # type: ignore[attr-defined]


def test_a_change_is_in_force_from_the_next_update_on(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, lr=0.01, warmup=0, schedule="constant")
    changed_at_three_and_seven(run, 12)
    assert [row.lr for row in run.metrics().rows if row.lr is not None] == [0.01] * 3 + [0.02] * 9
    assert [(each.step, dict(each.values)) for each in run.changes()] == [
        (3, {"lr": 0.02, "label_smoothing": 0.1}),
        (7, {"clip": 0.5, "evaluate_every": 4}),
    ]
    assert run.requested_values() == {}
    changed = run.spec.training.replace(lr=0.02, label_smoothing=0.1, clip=0.5)
    assert run.spec_now().training == changed
    made = json.loads((run.folder / "checkpoint" / "run.json").read_text())
    assert made["training"] == run.spec.training.to_dict()
    assert [each["step"] for each in made["changes"]] == [3, 7]
    straight = tiny_run(tmp_path, lr=0.01, warmup=0, schedule="constant")
    drive(straight)
    assert not end_equally(straight, run)


@pytest.mark.parametrize("kept", [2, 5, 8])
def test_a_killed_run_takes_on_the_same_at_the_same_steps(kept: int, tmp_path: Path) -> None:
    """Its last state is of a step before the changes, between them, or after them."""
    whole, killed = tiny_run(tmp_path), tiny_run(tmp_path)
    changed_at_three_and_seven(whole, 12)
    changed_at_three_and_seven(killed, kept)
    (killed.folder / "changes.jsonl").write_bytes((whole.folder / "changes.jsonl").read_bytes())
    drive(killed)
    assert end_equally(whole, killed)
    assert whole.metrics().losses() == killed.metrics().losses()
    assert whole.changes() == killed.changes()


def test_a_change_after_a_kill_takes_the_run_another_way(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    changed_at_three_and_seven(run, 5)
    (run.folder / "changes.jsonl").write_text('{"step": 3, "lr": 0.02}\n{"step": 9, "lr": 5}\n')
    run.change(lr=0.03)
    assert run.requested_values() == {"lr": 0.03}
    assert run.spec_now().training.lr == 0.02, "it is taken on with the next update"
    drive(run)
    assert [(each.step, each.values["lr"]) for each in run.changes()] == [(3, 0.02), (5, 0.03)]


def test_evaluation_as_often_as_asked(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, steps=30)
    run.change(evaluate_every=7)
    drive(run)
    measured = [step for step, _ in run.metrics().values()]
    assert measured == [0, 1, 2, 3, 5, 7, 10, 14, 15, 20, 21, 28, 30]


def test_what_cannot_change_is_refused_in_a_sentence_and_damage_is_left_out(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    for values, sentence in (
        ({"batch_size": 8}, "batch_size cannot change while a run trains."),
        ({"lr": -1.0}, "lr must be between"),
        ({"lr": float("nan")}, "lr must be between"),
        ({"clip": "1"}, "clip must be float"),
        ({"evaluate_every": -1}, "evaluate_every must be between 0 and"),
    ):
        with pytest.raises(RunError, match=sentence):
            run.change(**values)
    for name in ("requested.json", "changes.jsonl"):
        for text in ("[]", "{", '{"lr": "x"}', '{"step": 1, "lr": true}', '{"step": 1, "a": 0}'):
            (run.folder / name).write_text(text)
            drive(run, steps=1)
    drive(run)
    assert run.spec_now().training == run.spec.training
    with pytest.raises(RunError, match="is done"):
        run.change(lr=0.1)


def test_of_two_tabs_the_last_one_counts_and_nothing_is_torn(tmp_path: Path) -> None:
    run = create(tmp_path, tiny_spec(steps=1_000))

    def tab(number: int) -> None:
        for turn in range(4):
            run.change(lr=1e-3 * (1 + turn), clip=float(number))
            assert run.requested_values().keys() <= {"lr", "clip"}

    with ThreadPoolExecutor(2) as tabs:
        asked = [tabs.submit(tab, number) for number in (1, 2)]
        progress = advance(run.folder)
        while not all(each.done() for each in asked):
            next(progress)
        for each in asked:
            each.result()
    run.change(lr=0.5)
    next(progress)
    progress.close()  # type: ignore[attr-defined]
    assert run.requested_values() == {}
    assert run.spec_now().training.lr == 0.5
    steps = [each.step for each in run.changes()]
    assert steps == sorted(set(steps))
    assert len((run.folder / "changes.jsonl").read_text().splitlines()) == len(steps)


def test_what_no_longer_suits_is_refused_in_words_until_one_is_taken_on(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    progress = advance(run.folder)
    next(progress)
    (run.folder / "requested.json").write_text('{"lr": -1}')
    next(progress)
    assert run.changes() == []
    assert run.requested_values() == {}
    assert run.refusal().startswith("The change was not applied after step 1: ")
    run.change(lr=0.02)
    next(progress)
    progress.close()  # type: ignore[attr-defined]
    assert run.refusal() == ""
    for damaged in ("{", '{"step": "x", "fault": "y"}', '{"step": 1, "fault": 2}'):
        (run.folder / "refused.json").write_text(damaged)
        assert run.refusal() == ""
