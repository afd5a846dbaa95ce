"""The Training page without a browser: the form, the run it shows, its words, what it refuses."""

import io
import json
import re
import shutil
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.app.session import SESSION_KEY
from explorer.catalog.available_models import brought_model
from explorer.catalog.opened_model import OpenModel, open_entry, open_model
from explorer.catalog.shipped import SHIPPED
from explorer.components.mounting import PageViews
from explorer.runs.cluster import Cluster
from explorer.runs.finetuning import finetune_spec, task_for
from explorer.runs.metrics import cut_after
from explorer.runs.run import Run, all_runs, open_folder
from explorer.runs.run_size import trained_parameters
from explorer.runs.spec import STATES, WAITING, RunSpec, Status
from explorer.runs.worker import train_to_end
from explorer.system import limits
from explorer.system.data_folders import runs_root
from explorer.tasks import TASKS, task_list, task_of
from explorer.tasks.own_data import SUBWORDS
from explorer.text import AdoptedTokenizer
from explorer.text.visible_text import literal
from explorer.views.training import live_attention, run_words
from explorer.views.training.data_view import RequestedRun, length_bars
from explorer.views.training.form_inputs import COLD, HOT
from explorer.views.training.run_start import TOKENIZERS
from tests import apps
from tests.apps import said
from tests.source import ROOT
from tests.tiny import tiny_run, trained_run
from tests.views.drawing import pasted, press, sent
from tests.views.fake_cluster import FakeCluster

pytestmark = pytest.mark.usefixtures("at_the_machine", "cluster")


page = partial(apps.page_alone, "training/training")


def test_a_click_makes_the_run_of_the_form(cluster: FakeCluster, tmp_path: Path) -> None:
    at = page()
    assert cluster.starts, "the processes are started while the form is read"
    at.number_input(key="reverse_layers").set_value(2)
    at.number_input(key="reverse_lr").set_value(0.002)
    at.selectbox(key="reverse_norm").set_value("rms")
    at.toggle(key="reverse_stop_at_goal").set_value(True)
    press(at, "start_training")
    (run,) = all_runs(tmp_path)
    assert cluster.sent == [run.name] == ["reverse-1"]
    spec = run.spec
    assert (spec.model.n_layers, spec.model.norm, spec.training.lr) == (2, "rms", 0.002)
    assert spec.stop_at == 0.99
    assert at.session_state["run"] == "reverse-1"
    assert "reverse-1** · waiting for its turn" in said(page()), "without being asked for"
    press(at, "pause")
    assert run.last_command() == "pause"


def test_a_click_stops_only_what_its_button_named(cluster: FakeCluster, tmp_path: Path) -> None:
    tabs = [page() for _ in range(2)]
    for tab in (*tabs, tabs[1]):
        press(tab, "start_training")
    commands = [run.last_command() for run in reversed(all_runs(tmp_path))]
    assert commands == ["train", "stop", "train"], "the one that the second tab showed"
    done = trained_run(tmp_path)
    at = page(run=done.name)
    done.mark(WAITING)  # another tab resumes it
    cluster.submit(done)
    press(at, "reset_same_weights")
    assert done.last_command() == "train"


def can_start(at: AppTest) -> bool:
    return not next(each for each in at.button if each.label == "Start training").disabled


def test_what_a_run_takes_is_said_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_RUN_STEPS", "20000")
    at = page()
    assert re.search(r"89,758 parameters · [\d.]+ MB of memory · about [\d.]+ steps/s", said(at))
    short = "The run ends during the warm-up, so its learning rate only rises to 0.0000556, not "
    large = r"This model has [\d,]+ parameters; the limit is 20,000,000"
    for settings, sentence, is_refused in (
        ({"heads": 3}, r"d_model 64 is not divisible by n_heads 3\.", True),
        ({"heads": 4, "steps": 30_000}, re.escape(limits.RUN_STEPS.refusal(30_000)), True),
        ({"steps": 100, "warmup": 9_000}, re.escape(f"{short}0.00500."), False),
        ({"warmup": 100, "d_model": 8_192, "layers": 48}, large, True),
    ):
        for name, value in settings.items():
            at.number_input(key=f"reverse_{name}").set_value(value)
        apps.run(at)
        assert re.search(sentence, said(at)), sentence
        assert can_start(at) is not is_refused
        assert ("during the warm-up" in said(at)) is ("warmup" in settings and not is_refused)
    monkeypatch.setattr("explorer.runs.run_size.available_memory", lambda: 5_000_000)
    at = page()
    assert "of memory and this machine now has 5 MB" in said(at)
    assert not can_start(at)
    assert all_runs(tmp_path) == []


def test_the_batches_of_a_task_are_counted_as_the_form_says() -> None:
    at = page(task="negation", training_view="Data")
    at.number_input(key="negation_batch_size").set_value(32).run()
    assert "first 20 batches (640 examples)" in said(at)
    assert "The first 4 of 32 examples of the first batch" in said(at)
    assert length_bars([3, 3, 5]) == {"3": 2, "4": 0, "5": 1}
    many = length_bars(list(range(1, 101)))
    assert (len(many) <= 12, sum(many.values()), next(iter(many))) == (True, 100, "1–9")


def test_a_finished_run_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(SHIPPED))
    sentence = "This is the model before its first update: its weights are random."
    assert sentence in said(page())
    run = trained_run(tmp_path)
    at = page()
    assert at.selectbox(key="run").placeholder == "Choose an earlier run"
    assert sentence in said(at)
    changes = '{"step": 4, "lr": 0.25}\n{"step": 9, "clip": 0.5, "evaluate_every": 3}\n'
    (run.folder / "changes.jsonl").write_text(changes)
    (run.folder / "refused.json").write_text('{"step": 4, "fault": "Too large."}')
    at = page(run=run.name)
    refused = "The change was not applied after step 4: Too large."
    assert all(each in said(at) for each in ("reverse-1** · done", "expected pattern", refused))
    assert sentence not in said(at)
    header = str(sent(at, "watched")[0])
    assert "reverse-1 · Cross-attention" in header, "not the shipped model of its task"
    expected, planes = sent(at, "expected")
    assert expected["rows"] == [*"esrever", "</s>"], "the right answer, whatever it writes"
    pattern = np.frombuffer(planes["exact"], "<f4").reshape(expected["shape"])
    assert pattern[:7].argmax(-1).tolist() == [*range(6, -1, -1)]
    assert re.search(r"Answer: \*\*.*\*\* · expected: esrever", said(at))
    assert re.search(r"Generalisation gap at step 12: \*\*[−.\d]+\*\* nats", said(at))
    spec = json.dumps([json.loads(each.proto.spec) for each in at.get("vega_lite_chart")])
    assert "learning rate 0.00500 \\u2192 0.250" in spec
    assert "clip gradients at 1.00 \\u2192 0.500, evaluate every 0 \\u2192 3" in spec
    assert at.button(key="open_run").label == "Open reverse-1 on Attention maps"
    assert at.button(key="resume").disabled
    assert at.number_input(key="reverse_layers").label == "Layers"
    assert at.number_input(key="reverse_d_model").value == 16, "the form follows the run"
    assert "Differs from" not in said(at)
    at.number_input(key="reverse_lr").set_value(0.05).run()
    assert "Needs a restart." in said(at)
    assert run.requested_values() == {}


def test_the_score_says_over_how_many_rows_it_is_where_an_answer_is_wrong() -> None:
    expected, words = torch.eye(4), live_attention._score_words
    assert words(torch.tensor(0.976), expected) == "0.98 on the expected pattern"
    expected[1:] = 0
    assert words(torch.tensor(0.976), expected).endswith("pattern in 1 of 4 rows")


def test_the_readers_own_sentence_is_watched_where_the_task_can_read_it(tmp_path: Path) -> None:
    run = trained_run(tmp_path)
    at = apps.at_address(str(ROOT / "pages" / "training" / "training.py"), run=run.name)
    at.session_state["text"] = "hello"
    apps.run(at)
    assert at.text_input(key="sentence").value == "hello"
    for too_long_or_unknown in ("a" * 300, "HELLO, *you*", ""):
        at.session_state["text"] = too_long_or_unknown
        at.run()
        assert at.text_input(key="sentence").value == TASKS["reverse"].example
    assert "on the expected pattern" in said(at)
    at.text_input(key="sentence").set_value("olleh").run()
    at.session_state["text"] = "hello"
    assert apps.run(at).text_input(key="sentence").value == "olleh", "what was typed stays"
    apps.run(at.text_input(key="sentence").set_value("a" * 300))
    assert "tokens long" in said(at)


def test_a_long_curve_says_and_keeps_its_points(cluster: FakeCluster, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    cluster.submit(run)
    path = run.folder / "metrics.jsonl"

    def measure(steps: range) -> None:
        rows = ({"step": at, "loss": 1.0, "value": at / 4000} for at in steps)
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    at = page(run=run.name)
    assert "Each point" not in said(at)
    measure(range(1, 602))
    text = said(at.run())
    assert "Each point is the mean of up to 3 updates." in text
    assert "151 of 601 measurements are drawn: one in 4, and the last." in text
    cut_after(path, 500)  # as a run does that goes on from step 500
    measure(range(501, 2400))
    drawn = apps.run(at).session_state[SESSION_KEY].state(PageViews).drawn
    (figure,) = drawn["held_out_curve"].figures()
    assert [*figure.columns["step"]] == [*range(1, 2400, 8), 2399], "no step twice"


def test_a_paused_run_goes_on_or_takes_one_step(cluster: FakeCluster, tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    run.command("step")
    train_to_end(run.folder)
    at = page(run=run.name)
    assert "reverse-1** · paused" in said(at)
    assert at.button(key="open_run").label == "Open step 1 of reverse-1 on Attention maps"
    press(at, "step")
    assert (run.last_command(), cluster.sent) == ("step", ["reverse-1"])
    assert "waiting for its turn" in said(at)


def test_what_applies_is_told_to_the_run_the_rest_waits_for_a_restart(tmp_path: Path) -> None:
    at = press(page(), "start_training")
    (run,) = all_runs(tmp_path)
    rate, layers = at.number_input(key="reverse_lr"), at.number_input(key="reverse_layers")
    assert rate.label.startswith(HOT)
    assert layers.label.startswith(COLD)
    rate.set_value(0.25).run()
    assert run.requested_values() == {"lr": 0.25}
    assert "Differs from" not in said(at), "the run has it, or will after its next step"
    at.number_input(key="reverse_layers").set_value(2).run()
    at.number_input(key="reverse_batch_size").set_value(32).run()
    assert f"Differs from **{literal(run.title)}**" in said(at)
    assert "layers 1 → 2, batch size 64 → 32. Needs a restart." in said(at)
    assert run.requested_values() == {"lr": 0.25}
    assert at.button(key="start_training").label == "Restart"
    press(at, "start_training")
    new, old = all_runs(tmp_path)
    assert (old.name, old.last_command()) == (run.name, "stop")
    assert (new.spec.model.n_layers, new.spec.training.lr) == (2, 0.25)
    assert "Differs from" not in said(at)


def test_a_run_is_started_again_with_its_weights_or_new_ones_or_data(tmp_path: Path) -> None:
    first = trained_run(tmp_path)
    seeds = []
    for reset in ("same_weights", "new_weights", "new_data"):
        at = press(page(run=first.name), f"reset_{reset}")
        run = all_runs(tmp_path)[0]
        assert at.session_state["run"] == run.name
        assert run.spec.model == first.spec.model
        seeds.append((run.spec.weights_seed, run.spec.training.seed))
    assert seeds == [(5, 0), (6, 0), (5, 1)]


def requested_spec(at: AppTest) -> RunSpec:
    spec = at.session_state[SESSION_KEY].state(RequestedRun).spec
    assert isinstance(spec, RunSpec)
    return spec


def other_value(widget: Any) -> Any:
    """Another value that the widget can have."""
    value = widget.value
    if isinstance(value, bool):
        return not value
    if hasattr(widget, "options"):
        return [widget.options[0]] if isinstance(value, list) else widget.options[1]
    return type(value)(value / 2 or 0.1) if isinstance(value, float) else min(2 * value, 8) or 1


def test_a_link_holds_every_setting_that_differs_from_its_default() -> None:
    for where in ({"settings": "like~paper"}, {"task": "subwords", "start_from": "letters"}):
        at = page(**where)
        usual = requested_spec(at)
        before = "".join(at.query_params.get("settings", ""))
        assert before == where.get("settings", "")
        start = f"{where.get('task', 'reverse')}_"
        for widget in [*at.number_input, *at.toggle, *at.selectbox, *at.multiselect]:
            if str(widget.key).startswith(start) and not str(widget.key).endswith("_like"):
                widget.set_value(other_value(widget))
        at.run()
        link = {name: "".join(value) for name, value in at.query_params.items()}
        assert requested_spec(at) == requested_spec(page(**link)) != usual, link
        assert link["settings"].count("~") > 20


def test_a_setting_in_a_link_that_the_form_cannot_have_is_said() -> None:
    at = page(task="reverse", settings="steps~77~norm~batch~lr~nan~warmup~9999999999~wisdom~1~d_ff")
    for words in (
        "“Norm” has no “batch” here; showing layer.",
        "“Learning rate” goes from 1e-08 to 1e+09, not “nan”",
        "“Warm-up steps” goes from 0 to",
        "not “”; showing 128.",
        "“settings” names “wisdom”, which this form lacks.",
    ):
        assert words in said(at)
    assert at.query_params["settings"] == "steps~77"
    at.number_input(key="reverse_steps").set_value(78).run()
    assert "wisdom" not in said(at)


def test_the_form_follows_the_run_on_screen_until_another_task_is_chosen(tmp_path: Path) -> None:
    runs = [trained_run(tmp_path, task=task) for task in ("negation", "induction")]
    at = page(run=runs[0].name)
    assert at.selectbox(key="task").value == "negation"
    assert re.search(r"Answer: \*\*\w+\*\* 0\.\d+ · ", said(at)), "a class"
    assert "Differs from" not in said(at)
    at.selectbox(key="task").set_value("sort").run()
    at.selectbox(key="run").set_value(runs[1].name).run()
    assert at.selectbox(key="task").value == "induction"
    assert "Next token: **" in said(at)
    assert page(run=runs[0].name, task="sort").selectbox(key="task").value == "sort"


def test_what_was_typed_is_there_after_another_page_and_another_task() -> None:
    at = page()
    at.number_input(key="reverse_lr").set_value(1e9).run()
    apps.run(at.selectbox(key="reverse_schedule").set_value("cosine"))
    assert not at.button(key="start_training").disabled, "one may see it diverge"
    at.selectbox(key="task").set_value("copy").run()
    at.selectbox(key="task").set_value("reverse").run()
    assert at.number_input(key="reverse_lr").value == 1e9
    assert at.selectbox(key="reverse_schedule").value == "cosine"


def test_absurd_numbers_in_the_files_of_a_run_are_passed_over(tmp_path: Path) -> None:
    run = trained_run(tmp_path)
    record = run.folder / "checkpoint" / "run.json"
    huge = f"1{'0' * 400}"
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write(f'{{"step": {huge[:300]}, "loss": 1.0}}\n{{"step": 13, "value": {huge}}}\n')
    record.write_text(f'{{"steps": {huge}, "metrics": {{"exact match": {huge}}}}}')
    text = said(page(run=run.name))
    assert "reverse-1** · done" in text
    assert "000,000" not in text
    record.write_text("{")
    at = page(run=run.name)
    assert "cannot be read: run.json in checkpoint is not readable JSON." in said(at)


def test_what_is_damaged_is_one_sentence_and_the_rest_goes_on(tmp_path: Path) -> None:
    whole, cut, unread = (trained_run(tmp_path) for _ in range(3))
    (unread.folder / "status.json").write_text("{")
    assert f"{unread.name} cannot be read" in said(page(run=unread.name))
    newest = cut.latest()
    assert newest is not None
    (newest / "model.safetensors").write_bytes(b"cut")
    at = page(run=whole.name)
    assert "on the expected pattern" in said(at)
    apps.run(at.selectbox(key="run").set_value(cut.name))
    assert f"{cut.title}** · done" in said(at)
    assert "cannot be opened" in said(at)
    assert "on the expected pattern" not in said(at), "that would be the other run's attention"


def test_a_text_of_ones_own_is_looked_at_and_has_a_vocabulary_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page(task="characters")
    assert "plays of William Shakespeare, in the public domain" in said(at)
    assert "text = None" in pasted(at)
    assert "KDD 2015, CC BY 4.0." in said(page(task="reviews"))
    press(at, "start_training")
    (run,) = all_runs(tmp_path)
    assert run.text() == task_list.text_for("characters")
    monkeypatch.setattr(Run, "owner", "another reader")
    assert not run.is_private
    shutil.rmtree(run.folder)
    at = page(task="characters")
    apps.run(at.text_area(key="pasted_characters").set_value("too short"))
    assert "The text has 9 characters" in said(at)
    texts = [text * 80 for text in ("the quick brown fox. ", "Now IS the time, 1984; WHY? ")]
    at.text_area(key="pasted_characters").set_value(texts[0]).run()
    at.number_input(key="characters_layers").set_value(2).run()
    press(at, "start_training")
    at.text_area(key="pasted_characters").set_value(texts[1]).run()
    press(at, "start_training")
    newer, older = all_runs(tmp_path)
    assert [older.text(), newer.text()] == texts
    assert older.is_private
    sizes = [run.spec.model.vocab_size for run in (older, newer)]
    assert sizes == [task_of("characters", text).model.vocab_size for text in texts]
    assert newer.spec.model.n_layers == older.spec.model.n_layers == 2
    apps.run(at.text_area(key="pasted_characters").set_value("x" * 300_000))
    assert "upload a file instead" in said(at)


def trained_in_two_steps(at: AppTest, task: str, tmp_path: Path) -> OpenModel:
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


def test_a_table_of_pairs_is_trained_with_the_tokens_that_were_chosen(tmp_path: Path) -> None:
    at = page(task="pairs")
    at.text_area(key="pasted_pairs").set_value("source,target\na,b\nc\n").run()
    assert "Line 3 has no target: fill it in, or leave the line out." in said(at)
    table = "source,target\n" + "\n".join(f"row {n},{n} row" for n in range(60))
    at.text_area(key="pasted_pairs").set_value(table).run()
    apps.run(at.selectbox(key="tokens").set_value(TOKENIZERS[SUBWORDS]))
    assert "tokenizer = 'subwords'" in pasted(at)
    opened = trained_in_two_steps(at, "pairs", tmp_path)
    assert opened.tokenizer.kind == "bytes"
    (reset,) = [button for button in at.run().button if button.label == "Same weights"]
    reset.click().run()
    again, first = all_runs(tmp_path)
    assert again.tokenizer() == first.tokenizer() is not None


def test_a_model_is_tuned_whole_or_with_adapters_by_its_tokenizer(small_models: Path) -> None:
    at = page(task="subwords", start_from="letters")
    text = "the cat and the hat " * 300
    at.text_area(key="pasted_subwords").set_value(text).run()
    assert "Read by the tokenizer of Letters" in said(at)
    (sizes,) = [each.value for each in at.caption if "are trained" in each.value]
    letters = open_model("letters")
    asked = finetune_spec(letters, task_for(letters, "subwords", text), {"lora_rank": 4})
    assert sizes.startswith(f"{trained_parameters(asked):,} of ")
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


@pytest.mark.usefixtures("published_models")
def test_a_run_reads_with_the_tokenizer_of_another_model(tmp_path: Path) -> None:
    at = page(task="sentences")
    words = ("the", "cat", "sat", "on", "mat")
    rows = enumerate(product(words, words, words))
    table = "text,label\n" + "\n".join(f"{' '.join(each)},{at % 2}" for at, each in rows)
    at.text_area(key="pasted_sentences").set_value(table).run()
    tokens = at.selectbox(key="tokens")
    (bert,) = [each for each in tokens.options if each.endswith(" bert")]
    apps.run(tokens.set_value(bert))
    assert 'tokenizer = open("tokenizer.json").read()' in pasted(at)
    opened = trained_in_two_steps(at, "sentences", tmp_path)
    assert opened.tokenizer.kind == "wordpiece"
    assert opened.tokenizer.encode("a cat")[0].label == "<cls>"
    assert isinstance(opened.tokenizer, AdoptedTokenizer)
    assert "sentences-1** · done" in said(at.run())


def test_a_silent_cluster_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.runs.cluster.ANSWER_WITHIN", 0.3)
    away = Cluster(tmp_path, "tcp://127.0.0.1:9")
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: away)
    at = press(page(), "start_training")
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in said(at)


def test_progress_says_where_how_fast_and_how_long() -> None:
    status = Status("training", 120, 400, measure="exact match", value=0.25, steps_per_second=31.24)
    words = "Step 120 of 400 · 31.2 steps/s · 9 s left · exact match 0.250 on held-out data"
    assert run_words.progress_words(status) == words
    assert run_words.progress_words(status.replace(measured_at=100)) == f"{words} at step 100"
    done = Status("done", 400, 400, seconds=12.3)
    assert run_words.progress_words(done) == "Step 400 of 400 · 12 s of training"
    for seconds, short in [(3.4, "3 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]:
        assert run_words.duration(seconds) == short
    assert set(run_words.STATE_WORDS) == set(STATES)
