"""The Training page without a browser: the form, the run it shows, its words, what it refuses."""

import io
import json
import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.app import limits
from explorer.app.session import KEY
from explorer.catalog.available_models import brought_model
from explorer.catalog.folders import runs_root
from explorer.catalog.opened_model import Opened, open_entry, open_model
from explorer.catalog.shipped import SHIPPED
from explorer.runs.cluster import Cluster
from explorer.runs.finetuning import finetune_spec
from explorer.runs.metrics import cut_after
from explorer.runs.open_run import open_folder
from explorer.runs.parent import task_for
from explorer.runs.run import all_runs
from explorer.runs.spec import STATES, Status
from explorer.runs.worker import train_to_end
from explorer.tasks import TASKS, task_of
from explorer.text import AdoptedTokenizer
from explorer.text.literal import literal
from explorer.views.training import live_attention, live_run, run_words
from explorer.views.training.form_inputs import COLD, HOT
from tests import apps
from tests.apps import said
from tests.runs.making import tiny_run
from tests.source import ROOT
from tests.views.desk import Desk
from tests.views.drawing import pasted, press

PAGE = str(ROOT / "pages" / "training" / "training.py")


@pytest.fixture
def desk(at_the_machine: None, desk: Desk) -> Desk:
    return desk


def page(**address: str) -> AppTest:
    return apps.page_alone("training/training", **address)


def test_a_click_makes_a_run_as_the_form_says_and_shows_it(desk: Desk, tmp_path: Path) -> None:
    at = page()
    assert desk.starts, "the processes are started while the form is read"
    at.number_input(key="reverse_layers").set_value(2)
    at.number_input(key="reverse_lr").set_value(0.002)
    at.selectbox(key="reverse_norm").set_value("rms")
    at.toggle(key="reverse_stop_at_goal").set_value(True)
    press(at, "start_training")
    (run,) = all_runs(tmp_path)
    assert desk.sent == [run.name] == ["reverse-1"]
    spec = run.spec
    assert (spec.model.n_layers, spec.model.norm, spec.training.lr) == (2, "rms", 0.002)
    assert spec.stop_at == 0.99
    assert at.session_state["run"] == "reverse-1"
    assert "reverse-1** · waiting for a free worker" in said(page()), "without being asked for"
    press(at, "pause")
    assert run.commanded() == "pause"


def test_a_fault_is_said_in_its_own_words_and_nothing_starts(desk: Desk, tmp_path: Path) -> None:
    at = page()
    at.number_input(key="reverse_heads").set_value(3).run()
    assert not at.exception
    assert "d_model 64 is not divisible by n_heads 3." in said(at)
    starts = [button for button in at.button if button.label == "Start training"]
    assert all(button.disabled for button in starts)
    assert all_runs(tmp_path) == []


def test_too_many_steps_are_said_by_the_button(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_RUN_STEPS", "5000")
    at = page()
    at.number_input(key="reverse_steps").set_value(9_000).run()
    assert limits.RUN_STEPS.refusal(9_000) in said(at)


def test_a_warm_up_that_the_run_does_not_outlast_is_said_below_the_steps(desk: Desk) -> None:
    at = page()
    assert "during the warm-up" not in said(at)
    at.number_input(key="reverse_steps").set_value(100).run()
    at.number_input(key="reverse_warmup").set_value(9_000).run()
    sentence = (
        "The run ends during the warm-up, so its learning rate only rises to 0.0000556, not "
        "0.00500."
    )
    assert sentence in said(at)
    assert not at.button(key="start_training").disabled
    at.number_input(key="reverse_warmup").set_value(100).run()
    assert "during the warm-up" not in said(at)


def test_what_a_run_takes_is_said_before_it_starts(desk: Desk) -> None:
    at = page()
    assert re.search(r"89,758 parameters · [\d.]+ MB of memory · about [\d.]+ steps/s", said(at))
    at.number_input(key="reverse_layers").set_value(2).run()
    assert "89,758" not in said(at)
    assert not at.button(key="start_training").disabled


def test_a_model_larger_than_the_machine_is_refused_with_its_size(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page()
    at.number_input(key="reverse_d_model").set_value(8192)
    at.number_input(key="reverse_layers").set_value(48).run()
    assert not at.exception
    assert re.search(r"This model has [\d,]+ parameters; at most 20,000,000", said(at))
    monkeypatch.setattr("explorer.runs.run_size.available_memory", lambda: 5_000_000)
    at = page()
    assert "of memory and this machine now has 5 MB" in said(at)
    assert all(b.disabled for b in at.button if b.label == "Start training")
    assert all_runs(tmp_path) == []


def test_what_is_shown_without_a_run_is_said_whether_or_not_there_are_runs(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(SHIPPED))
    sentence = "Until you start or choose a run, this is a model already trained on this task."
    assert sentence in said(page())
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    at = page()
    assert at.selectbox(key="run").placeholder == "Choose an earlier run"
    assert sentence in said(at)
    assert sentence not in said(page(run=run.name))


def test_the_rows_of_the_expected_pattern_are_the_right_answer() -> None:
    """Whatever an untrained model writes: fewer tokens, others, or more."""
    task = TASKS["reverse"]
    source, written = task.tokenizer.encode("abc"), task.tokenizer.encode("zzzzzz")
    for count, labels in ((2, "c b"), (4, "c b a </s>"), (6, "c b a </s> – –")):
        forward = SimpleNamespace(source=source, written=written[:count])
        rows = live_attention._expected_rows(task, cast(Any, forward), written[:count])
        assert [row.label for row in rows] == labels.split()


def test_the_score_says_over_how_many_rows_it_is_where_an_answer_is_wrong() -> None:
    expected = torch.eye(4)
    assert live_attention._said(torch.tensor(0.976), expected) == "0.98 on the expected pattern"
    expected[1:] = 0
    assert live_attention._said(torch.tensor(0.976), expected).endswith("pattern in 1 of 4 rows")


def test_a_finished_run_is_found_again_by_the_address(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    at = page(run=run.name)
    text = said(at)
    assert "reverse-1** · done" in text
    assert "on the expected pattern" in text
    assert f"**{literal('reverse-1')} · Cross-attention" in text, (
        "not the shipped model of its task"
    )
    assert at.button(key="open_run").label == "Open reverse-1 on Attention maps"
    assert at.button(key="resume").disabled


def test_the_readers_own_sentence_is_watched_where_the_task_can_read_it(
    desk: Desk, tmp_path: Path
) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    at = apps.at_address(PAGE, run=run.name)
    at.session_state["text"] = "hello"
    apps.run(at)
    assert at.text_input(key="watched_reverse").value == "hello"
    for too_long_or_unknown in ("a" * 300, "HELLO, *you*", ""):
        at.session_state["text"] = too_long_or_unknown
        at.run()
        assert at.text_input(key="watched_reverse").value == TASKS["reverse"].example
    assert "on the expected pattern" in said(at)
    at.text_input(key="watched_reverse").set_value("olleh").run()
    at.session_state["text"] = "hello"
    assert at.run().text_input(key="watched_reverse").value == "olleh", "what was typed stays"
    assert not at.exception
    at.text_input(key="watched_reverse").set_value("a" * 300).run()
    assert not at.exception
    assert "tokens long" in said(at)


def test_where_looks_are_slow_they_are_fewer(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    desk.submit(run)
    took = live_run._cpu_times()
    took.clear()
    waiting = run.status()
    assert live_run.seconds_between(waiting) == live_run.EVERY, "no look yet"
    took.extend([9.0, 9.0])
    assert live_run.seconds_between(waiting) == live_run.EVERY, "the first looks are no measure"
    page(run=run.name)
    assert len(took) == 3, "the page counts its look"
    took.extend([live_run.SLOW / 2] * live_run.LAST)
    assert live_run.seconds_between(waiting) == live_run.EVERY
    took.extend([live_run.SLOW * 2] * live_run.LAST)
    assert live_run.seconds_between(waiting) == live_run.SELDOM
    assert not page(run=run.name).exception
    train_to_end(run.folder)
    assert live_run.seconds_between(run.status()) is None
    took.clear()


def test_a_long_curve_says_what_a_point_is(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    desk.submit(run)
    assert "Each point" not in said(page(run=run.name))
    lines = [json.dumps({"step": at, "loss": 1.0, "value": 0.5}) for at in range(1, 602)]
    (run.folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    text = said(page(run=run.name))
    assert "Each point is the mean of up to 3 updates." in text
    assert "151 of 601 measurements are drawn: one in 4, and the last." in text


def test_the_held_out_curve_spans_the_whole_run_and_a_resumed_one(
    desk: Desk, tmp_path: Path
) -> None:
    run = tiny_run(tmp_path)
    desk.submit(run)
    path = run.folder / "metrics.jsonl"
    lines = [json.dumps({"step": at, "value": at / 4000}) + "\n" for at in range(1500)]
    path.write_text("".join(lines))
    at = page(run=run.name)
    steps = held_out_steps(at)
    assert (steps[0], steps[-1], len(steps)) == (0, 1499, 189)
    assert set(steps[:-1]) == set(range(0, 1500, 8))
    cut_after(path, 1000)  # as a run does that goes on from step 1,000
    with path.open("a") as file:
        file.writelines(json.dumps({"step": at, "value": 0.5}) + "\n" for at in range(1001, 2400))
    steps = held_out_steps(at.run())
    assert (steps[0], steps[-1]) == (0, 2399)
    assert set(steps[:-1]) == set(range(0, 2400, 8)), "the same points as before"


def held_out_steps(at: AppTest) -> list[int]:
    """The steps of the points that the second chart is given."""
    assert not at.exception
    (figure,) = at.session_state[KEY].drawn["held_out_curve"].figures()
    return list(figure.columns["step"])


def test_a_run_that_its_cluster_has_forgotten_can_be_resumed(desk: Desk, tmp_path: Path) -> None:
    tiny_run(tmp_path)
    at = page(run="reverse-1")
    assert "interrupted" in said(at)
    press(at, "resume")
    assert desk.sent == ["reverse-1"]
    assert "waiting for a free worker" in said(at), "so the page goes on looking"


def test_a_paused_run_goes_on_or_takes_one_step(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    run.command("step")
    train_to_end(run.folder)
    at = page(run=run.name)
    assert "reverse-1** · paused" in said(at)
    assert at.button(key="open_run").label == "Open step 1 of reverse-1 on Attention maps"
    press(at, "step")
    assert (run.commanded(), desk.sent) == ("step", ["reverse-1"])
    assert "waiting for a free worker" in said(at)


def test_what_applies_now_is_told_to_the_run_and_the_rest_waits_for_a_restart(
    desk: Desk, tmp_path: Path
) -> None:
    at = press(page(), "start_training")
    (run,) = all_runs(tmp_path)
    rate, layers = at.number_input(key="reverse_lr"), at.number_input(key="reverse_layers")
    assert rate.label.startswith(HOT)
    assert layers.label.startswith(COLD)
    rate.set_value(0.25).run()
    assert run.requested() == {"lr": 0.25}
    assert "Differs from" not in said(at), "the run has it, or will after its next step"
    at.number_input(key="reverse_layers").set_value(2).run()
    at.number_input(key="reverse_batch_size").set_value(32).run()
    assert f"Differs from **{literal(run.title)}**" in said(at)
    assert "layers 1 → 2, batch size 64 → 32. Needs a restart." in said(at)
    assert run.requested() == {"lr": 0.25}
    assert at.button(key="start_training").label == "Restart"
    press(at, "start_training")
    new, old = all_runs(tmp_path)
    assert (old.name, old.commanded()) == (run.name, "stop")
    assert (new.spec.model.n_layers, new.spec.training.lr) == (2, 0.25)
    assert "Differs from" not in said(at)


def test_a_run_that_is_done_is_told_nothing(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    at = page(run=run.name)
    assert at.number_input(key="reverse_layers").label == "Layers"
    assert at.number_input(key="reverse_d_model").value == 16, "the form follows the run"
    assert "Differs from" not in said(at)
    at.number_input(key="reverse_lr").set_value(0.25).run()
    assert "learning rate 0.00500 → 0.250. Needs a restart." in said(at)
    assert run.requested() == {}


def test_a_run_is_started_again_with_the_same_weights_or_new_ones_or_new_data(
    desk: Desk, tmp_path: Path
) -> None:
    first = tiny_run(tmp_path)
    train_to_end(first.folder)
    seeds = []
    for reset in ("same_weights", "new_weights", "new_data"):
        at = press(page(run=first.name), f"reset_{reset}")
        run = all_runs(tmp_path)[0]
        assert at.session_state["run"] == run.name
        assert run.spec.model == first.spec.model
        seeds.append((run.spec.weights_seed, run.spec.training.seed))
    assert seeds == [(5, 0), (6, 0), (5, 1)]


def test_a_form_beside_a_run_of_another_text_has_the_vocabulary_of_its_own(
    desk: Desk, tmp_path: Path
) -> None:
    at = page(task="characters")
    at.text_area(key="pasted_characters").set_value("the quick brown fox. " * 80).run()
    at.number_input(key="characters_layers").set_value(2).run()
    press(at, "start_training")
    at.text_area(key="pasted_characters").set_value("Now IS the time, 1984; WHY? " * 80).run()
    press(at, "start_training")
    newer, older = (run.spec.model for run in all_runs(tmp_path))
    text = all_runs(tmp_path)[0].text()
    assert newer.vocab_size == task_of("characters", text).model.vocab_size != older.vocab_size
    assert newer.n_layers == older.n_layers == 2


def test_what_was_typed_is_there_after_another_page_and_another_task(desk: Desk) -> None:
    at = page()
    at.number_input(key="reverse_lr").set_value(1e9).run()
    at.selectbox(key="reverse_schedule").set_value("cosine").run()
    assert not at.exception
    assert not at.button(key="start_training").disabled, "one may see it diverge"
    at.selectbox(key="task").set_value("copy").run()
    at.selectbox(key="task").set_value("reverse").run()
    assert at.number_input(key="reverse_lr").value == 1e9
    assert at.selectbox(key="reverse_schedule").value == "cosine"


def test_the_answer_now_the_gap_and_both_ways_of_decoding_are_on_the_page(
    desk: Desk, tmp_path: Path
) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    text = said(page(run=run.name))
    assert re.search(r"Answer: \*\*.*\*\* · expected: esrever", text)
    assert re.search(r"Generalisation gap at step 12: \*\*[−.\d]+\*\* nats", text)
    negation = tiny_run(tmp_path, task="negation")
    train_to_end(negation.folder)
    assert re.search(r"Answer: \*\*\w+\*\* 0\.\d+ · ", said(page(run=negation.name)))
    induction = tiny_run(tmp_path, task="induction")
    train_to_end(induction.folder)
    assert "Next token: **" in said(page(run=induction.name))


def test_changes_stand_on_the_curve(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    lines = '{"step": 4, "lr": 0.25}\n{"step": 9, "clip": 0.5, "evaluate_every": 3}\n'
    (run.folder / "changes.jsonl").write_text(lines)
    assert live_run._changes(run, run.spec) == [
        (4, "learning rate 0.00500 → 0.250"),
        (9, "clip gradients at 1.00 → 0.500, evaluate every 0 → 3"),
    ]
    assert not page(run=run.name).exception


def test_a_change_that_was_refused_is_said(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    (run.folder / "refused.json").write_text('{"step": 4, "fault": "Too large."}')
    words = "The change was not applied after step 4: Too large."
    assert words in said(page(run=run.name))


def test_an_address_that_names_no_run_is_one_sentence(desk: Desk) -> None:
    for name in ["nothing-9", "../../etc", "<script>", "x" * 3000]:
        assert "There is no run called" in said(page(run=name))


def test_a_damaged_run_is_one_sentence_and_the_rest_goes_on(desk: Desk, tmp_path: Path) -> None:
    whole = tiny_run(tmp_path)
    train_to_end(whole.folder)
    for file in ["spec.json", "status.json"]:
        run = tiny_run(tmp_path)
        (run.folder / file).write_text("{")
        assert f"{run.name} cannot be read" in said(page(run=run.name))
        assert "done" in said(page(run=whole.name))


def test_absurd_numbers_in_the_files_of_a_run_are_passed_over(desk: Desk, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    huge = f"1{'0' * 400}"
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(f'{{"step": {huge[:300]}, "loss": 1.0}}\n{{"step": 13, "value": {huge}}}\n')
    made = f'{{"steps": {huge}, "metrics": {{"exact match": {huge}}}}}'
    (checkpoint / "run.json").write_text(made)
    text = said(page(run=run.name))
    assert "reverse-1** · done" in text
    assert "000,000" not in text


def test_weights_that_are_damaged_hide_the_picture_only(desk: Desk, tmp_path: Path) -> None:
    run, other = tiny_run(tmp_path), tiny_run(tmp_path)
    for each in (run, other):
        train_to_end(each.folder)
    newest = run.latest()
    assert newest is not None
    (newest / "model.safetensors").write_bytes(b"cut")
    at = page(run=other.name)
    assert "on the expected pattern" in said(at)
    at.selectbox(key="run").set_value(run.name).run()
    assert not at.exception
    assert "reverse-1** · done" in said(at)
    assert "cannot be opened" in said(at)
    assert "on the expected pattern" not in said(at), "that would be the other run's attention"


def test_a_text_of_ones_own_is_looked_at_before_it_is_learnt(desk: Desk, tmp_path: Path) -> None:
    at = page(task="characters")
    assert [button.disabled for button in at.button if button.label == "Start training"] == [True]
    at.text_area(key="pasted_characters").set_value("too short").run()
    assert not at.exception
    assert "The text has 9 characters" in said(at)
    text = "the quick brown fox jumps over the lazy dog. " * 40
    at.text_area(key="pasted_characters").set_value(text).run()
    press(at, "start_training")
    (run,) = all_runs(tmp_path)
    assert run.text() == text
    assert run.spec.task == "characters"
    at.text_area(key="pasted_characters").set_value("x" * 300_000).run()
    assert not at.exception
    assert "upload a file instead" in said(at)


def trained_in_two_steps(at: AppTest, task: str, tmp_path: Path) -> Opened:
    """The model of a run that the form starts; it has the tokenizer of the task."""
    at.number_input(key=f"{task}_steps").set_value(2)
    at.number_input(key=f"{task}_warmup").set_value(0)
    press(at, "start_training")
    (run,) = all_runs(tmp_path)
    assert train_to_end(run.folder) == "done"
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    opened = open_entry(brought_model(checkpoint))
    assert opened.tokenizer.kind == run.task().tokenizer.kind
    return opened


def test_a_table_of_pairs_is_trained_with_the_tokens_that_were_chosen(
    desk: Desk, tmp_path: Path
) -> None:
    at = page(task="pairs")
    at.text_area(key="pasted_pairs").set_value("source,target\na,b\nc\n").run()
    assert "Line 3 has no target: fill it in, or leave the line out." in said(at)
    table = "source,target\n" + "\n".join(f"row {n},{n} row" for n in range(60))
    at.text_area(key="pasted_pairs").set_value(table).run()
    at.selectbox(key="tokenizer_pairs").set_value("subwords").run()
    assert not at.exception
    assert "task_of('pairs', text, 'subwords')" in pasted(at)
    opened = trained_in_two_steps(at, "pairs", tmp_path)
    assert opened.tokenizer.kind == "bytes"
    (reset,) = [button for button in at.run().button if button.label == "Same weights"]
    reset.click().run()
    again, first = all_runs(tmp_path)
    assert again.tokenizer() == first.tokenizer() is not None


def test_a_model_is_fine_tuned_whole_or_with_adapters_and_keeps_its_tokenizer(
    desk: Desk, small_models: Path
) -> None:
    at = page(task="subwords", start_from="letters")
    text = "the cat and the hat " * 300
    at.text_area(key="pasted_subwords").set_value(text).run()
    assert "Read by the tokenizer of Letters" in said(at)
    (sizes,) = [each.value for each in at.caption if "are trained" in each.value]
    letters = open_model("letters")
    asked = finetune_spec(letters, task_for(letters, "subwords", text), {"lora_rank": 4})
    assert sizes.startswith(f"{asked.trained_parameters:,} of ")
    at.number_input(key="subwords_letters_lora_rank").set_value(2)
    at.number_input(key="subwords_letters_steps").set_value(2)
    at.number_input(key="subwords_letters_warmup").set_value(0).run()
    code = pasted(at)
    made: dict[str, Any] = {"open": lambda _: io.StringIO(text), "print": lambda *_: None}
    exec(code, made)
    assert len(made["losses"]) == 2
    assert sum(each.requires_grad for each in made["model"].parameters()) == 8
    press(at, "start_training")
    (run,) = all_runs(runs_root())
    assert (run.spec.parent, run.spec.lora_rank) == ("letters", 2)
    assert train_to_end(run.folder) == "done"
    tuned = open_folder(run.folder)
    assert tuned.tokenizer.ids(text) == letters.tokenizer.ids(text)
    at.segmented_control(key="subwords_letters_tuned").set_value("Whole model").run()
    assert not [each for each in at.caption if "are trained" in each.value]


def test_a_task_of_another_vocabulary_is_refused_beside_a_model(
    desk: Desk, small_models: Path
) -> None:
    at = page(task="reverse", start_from="letters")
    assert "has a vocabulary of its own, which this model does not read" in said(at)


def test_a_run_reads_with_the_tokenizer_of_another_model(
    desk: Desk, tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    at = page(task="sentences")
    words = ("the", "cat", "sat", "on", "mat")
    rows = enumerate(product(words, words, words))
    table = "text,label\n" + "\n".join(f"{' '.join(each)},{at % 2}" for at, each in rows)
    at.text_area(key="pasted_sentences").set_value(table).run()
    tokens = at.selectbox(key="tokenizer_sentences")
    (bert,) = [each for each in tokens.options if each.endswith(" bert")]
    tokens.set_value(bert).run()
    assert not at.exception
    assert "task_of('sentences', text, open(\"tokenizer.json\").read())" in pasted(at)
    opened = trained_in_two_steps(at, "sentences", tmp_path)
    assert opened.tokenizer.kind == "wordpiece"
    assert opened.tokenizer.encode("a cat")[0].label == "<cls>"
    assert isinstance(opened.tokenizer, AdoptedTokenizer)
    assert "sentences-1** · done" in said(at.run())


def test_a_cluster_that_does_not_answer_is_one_sentence(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.runs.cluster.ANSWER_WITHIN", 0.3)
    away = Cluster(tmp_path, "tcp://127.0.0.1:9")
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: away)
    at = press(page(), "start_training")
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in said(at)


def test_progress_says_where_how_fast_and_how_long() -> None:
    status = Status("training", 120, 400, measure="exact match", value=0.25, steps_per_second=31.24)
    measured = "exact match 0.250 on held-out data"
    at_120 = f"Step 120 of 400 · 31.2 steps/s · 9 s left · {measured}"
    assert run_words.progress_words(status) == at_120
    later = run_words.progress_words(status.replace(measured_at=100))
    assert later.endswith(f"{measured} at step 100")
    assert run_words.progress_words(Status("done", 400, 400, seconds=12.3)) == (
        "Step 400 of 400 · 12 s of training"
    )


def test_durations() -> None:
    for seconds, short in [(3.4, "3 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]:
        assert run_words.duration(seconds) == short


def test_every_state_has_words() -> None:
    assert set(run_words.STATE_WORDS) == set(STATES)
