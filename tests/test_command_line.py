"""The command line: what it writes is what the app opens, and errors are one sentence."""

import csv
import dataclasses
import json
import os
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from explorer.__main__ import main
from explorer.catalog import ModelError, model_download, opened_model
from explorer.catalog.model_download import DownloadProgress
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.catalog.shipped import SHIPPED, make_shipped
from explorer.runs.exported_metrics import COLUMNS
from explorer.runs.finetuning import PARENT
from explorer.runs.run import all_runs, run_named
from explorer.runs.worker import train_to_end
from explorer.tasks.recipes import RECIPES
from models.loading.checkpoint import peek
from models.loading.weight_files import WEIGHTS
from tests.served import ROOT
from tests.tiny import labelled_table, save_small_models, tiny_run, trained_run

TINY = "--layers 1 --heads 2 --d-model 16 --d-ff 16 --batch-size 4 --warmup 2".split()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DASK_ADDRESS", raising=False)
    monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def printed(capsys: pytest.CaptureFixture[str], *line: str) -> Any:
    """The JSON that a command prints, alone on standard output."""
    assert main([*line, "--json"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    return json.loads(said)


def refused(capsys: pytest.CaptureFixture[str], *line: str) -> str:
    """The line that a command says when it does nothing."""
    assert main([*line]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def test_a_trained_run_opens_and_answers(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wishes = "--steps 6 --lr 0.01 --schedule cosine --seed 3 --weights-seed 4 --norm rms".split()
    assert main(["train", "reverse", *TINY, *wishes]) == 0
    said = capsys.readouterr()
    assert "reverse-1 is done at step 6 of 6." in said.out
    assert "On 64 of 256 held-out rows: exact match" in said.out
    assert "6/6" in said.err, "the progress bar"
    assert said.out.splitlines()[-1] == "It opens in the app as reverse-1."
    spec = run_named(root, "reverse-1").spec
    assert (spec.weights_seed, spec.training.seed, spec.training.lr) == (4, 3, 0.01)
    assert (spec.model.norm, spec.model.d_model, spec.model.n_heads) == ("rms", 16, 2)
    assert opened_model.open_model("reverse-1", root).config == spec.model
    generate = ["generate", str(root / "reverse-1"), "hello", "--top-k", "3", "--top-p", "0.9"]
    assert main(generate) == 0
    assert capsys.readouterr().out
    (root / "reverse-1" / "checkpoint" / "model.safetensors").write_bytes(b"\0" * 100)
    refused(capsys, *generate)


def test_a_trained_model_is_trained_further_and_a_run_is_found_by_its_name(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = ["--from", "reverse", "--lora-rank", "2", "--lora-targets", "o_proj", "--steps", "2"]
    assert main(["train", "reverse", *wishes, "--json"]) == 0
    (run,) = all_runs(root)
    assert (run.spec.parent, run.spec.lora_targets) == ("reverse", ("o_proj",))
    ended = json.loads(capsys.readouterr().out)
    assert (ended["state"], ended["steps_per_second"]) == ("done", 2 / ended["seconds"])
    assert main(["generate", run.name, "31415"]) == 0
    assert main(["resume", run.name]) == 0
    capsys.readouterr()
    said = refused(capsys, "export", "--adapter", run.name, str(tmp_path / "adapter"))
    assert "No published model family has this architecture" in said


def test_a_text_of_ones_own_is_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text := tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    out = tmp_path / "fox"
    command = ["train", "characters", "--text", str(text), "--steps", "3", "--out", str(out)]
    assert main([*command, *TINY]) == 0
    assert (out / "text").read_text() == text.read_text()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"To open it in the app, start the app with EXPLORER_RUNS={tmp_path}."
    write = ["generate", str(out), "the qu", "--max-length", "5", "--seed", "1"]
    assert main(write) == 0
    first = capsys.readouterr().out
    assert first.startswith("the qu")
    assert len(first.rstrip("\n")) <= len("the qu") + 5
    assert main(write) == 0
    assert capsys.readouterr().out == first
    for greedy in ("1", "2"):
        main(["generate", str(out), "the", "--temperature", "0", "--seed", greedy])
    one, other = capsys.readouterr().out.splitlines()
    assert one == other


REFUSED = [
    ("train nothing", "There is no task called 'nothing'"),
    ("train reverse --heads 7", "--d-model 64 is not divisible by --heads 7."),
    ("train reverse --lr -1", "--lr must be "),
    ("train reverse --d-model 8192 --layers 64", "Make it narrower"),
    ("train characters --text /absent", "/absent cannot be read"),
    ("train characters --text /dev/zero", "/dev/zero has more than 20,000,000 bytes"),
    ("train characters --tokenizer /dev/zero", "/dev/zero has more than 20,000,000 bytes"),
    ("train characters --lora-rank 2", "LoRA adapts a trained model: name it with --from."),
    ("train reverse --from reverse --heads 2", "--heads is that of the model of --from"),
    ("train dates --from reverse", "has a vocabulary of its own, which this model does not read"),
    ("train reverse --from nothing", "There is no model called 'nothing' here."),
    (f"train characters --text {os.devnull}", "The text has 0 characters"),
    ("resume absent", "There is no folder and no run called absent"),
    ("generate absent hi", "There is no folder and no run called absent"),
    ("get smollm2 --to /dev/null/x", "Cannot write to /dev/null/x (Not a directory): choose"),
    ("train reverse --out /dev/null/x", "Cannot write to /dev/null/x (Not a directory): choose"),
    ("get nothing", "There is no model called 'nothing': it is one of smollm2, gpt2,"),
    ("checkpoints --only nothing", "No shipped model is called 'nothing'"),
    ("sweep reverse --lr 1e-3", "A sweep needs at least two values of one setting."),
    ("sweep reverse --lr fast,slow", "Learning rate needs a number, not 'fast'."),
    ("sweep reverse --layers 1,2.5", "Layers needs a whole number, not '2.5'."),
    ("sweep reverse --norm layer,batch", "Norm has no 'batch'; it is one of layer"),
    ("sweep nothing --lr 1,2", "There is no task called 'nothing'"),
    ("sweep reverse --lora-rank 1,2", "LoRA adapts a model that was trained before: choose one"),
    ("sweep sentences --from absent --lr 1,2", "There is no model called 'absent' here."),
    ("sweep sentences --tokenizer words --from absent", "--tokenizer is that of the model of"),
    ("evaluate absent", "There is no folder and no run called"),
]


def test_what_cannot_be_done_is_one_sentence_and_what_is_no_command_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for line, sentence in REFUSED:
        with subtests.test(line=line):
            assert sentence in refused(capsys, *line.split())
            assert all_runs(root) == []
    for line in ["", "fly", "train", "train reverse --steps many", "--Nonsense"]:
        with subtests.test(line=line):
            with pytest.raises(SystemExit) as ended:
                main(line.split())
            assert ended.value.code == 2
            assert capsys.readouterr().err.count("\n") == 1


SIGNALLED = """
import json, os, sys, torch
from explorer.__main__ import main
from explorer.system.cooperative import Breakable

plain, looks = Breakable.step, 0

def step(self):
    global looks
    looks += 1
    if looks == at:
        os.kill(os.getpid(), number)
    plain(self)

Breakable.step = step
for number, at, *command in json.loads(sys.argv[1]):
    looks = 0
    ended = main([*command, "--json"])
    print(json.dumps([looks, ended]), flush=True)
torch.nn.Module.__call__ = lambda *_, **__: os.kill(os.getpid(), number)
main(["generate", command[1], "1"])
"""


def test_a_signal_ends_a_measurement_or_an_update_with_its_state_written_down(root: Path) -> None:
    """At this look, and none comes after it; another command is ended by the system."""
    begins = ["train", "reverse", "--steps", "3", *TINY, "--accumulation", "2"]
    goes_on = ["resume", str(root / "reverse-1")]
    told = [
        [signal.SIGTERM, 3, *begins],
        [signal.SIGINT, 4, *goes_on],
        [signal.SIGTERM, 17, *goes_on],
    ]
    child = [sys.executable, "-c", SIGNALLED, json.dumps(told)]
    ended = subprocess.run(child, cwd=ROOT, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGTERM
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines[1::2] == [[3, 143], [4, 130], [17, 143]]
    assert ended.stderr.count(b"To continue: python -m explorer resume reverse-1\n") == 3
    assert [status["state"] for status in lines[::2]] == ["interrupted"] * 3
    steps = [status["step"] for status in lines[::2]]
    assert steps[0] == 0 < steps[-1], steps
    assert (root / "reverse-1" / "state" / f"step-{steps[-1]:06d}").is_dir()


def test_the_list_says_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = model_download.part_folder(PRETRAINED_MODELS["gpt2"].folder)
    part.mkdir(parents=True)
    (part / f"x{model_download.PART_SUFFIX}").write_bytes(bytes(3_000_000))
    (tmp_path / "examples" / "t5-small").mkdir()
    (tmp_path / "examples" / "t5-small" / "config.json").touch()
    assert main(["get"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert list(lines) == list(PRETRAINED_MODELS)
    assert "93 MB" in lines["smollm2"]
    assert "Apache 2.0" in lines["smollm2"]
    assert "3 of 551 MB" in lines["gpt2"]
    assert "245 MB, here" in lines["t5-small"]
    assert main(["get", "t5-small"]) == 0
    assert "is there already." in capsys.readouterr().out


def test_another_models_folder_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mine := tmp_path / "mine").mkdir()
    (mine / "config.json").touch()
    ask = ["get", "smollm2", "--to", str(mine)]
    sentence = "The folder mine holds another model than SmolLM2-135M-Instruct; name one that"
    for record in (None, "[]", json.dumps(PRETRAINED_MODELS["gpt2"].record)):
        if record is not None:
            (mine / "run.json").write_text(record)
        assert sentence in refused(capsys, *ask)
        with pytest.raises(ModelError, match=sentence):
            model_download.download(PRETRAINED_MODELS["smollm2"], mine, lambda _: None)
    (mine / "run.json").write_text(json.dumps(PRETRAINED_MODELS["smollm2"].record))
    assert main(ask) == 0
    assert "is there already." in capsys.readouterr().out


def test_an_interruption_while_it_is_imported_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    call, env = [sys.executable, "-m", "explorer", "get"], {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(call, cwd=ROOT, env=os.environ | env, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


def test_a_model_is_got_with_a_bar_and_an_interruption_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[Path] = []

    def fake(
        model: PretrainedModel, folder: Path, report: Callable[[DownloadProgress], None]
    ) -> Path:
        report(DownloadProgress("asking", 0, 100_000))
        for share in (40_000, 70_000, 100_000):
            report(DownloadProgress("fetching", share, 100_000))
            if folder.name == "interrupted":
                raise KeyboardInterrupt
        report(DownloadProgress("converting", 100_000, 100_000))
        done.append(folder)
        return folder

    monkeypatch.setattr("explorer.commands.model_commands.download", fake)
    assert main(["get", "smollm2"]) == 0
    said = capsys.readouterr()
    assert "SmolLM2-135M-Instruct: 100%" in said.err
    assert "converting" in said.err
    assert "is Apache 2.0." in said.out
    assert said.out.splitlines()[-1] == "It opens in the app as smollm2."
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    assert main(["get", "smollm2", "--to", str(tmp_path / "link")]) == 0
    assert f"EXPLORER_MODELS={tmp_path / 'mine'}." in capsys.readouterr().out
    assert done == [tmp_path / "examples" / "smollm2", tmp_path / "mine"]
    assert main(["get", "smollm2", "--to", str(tmp_path / "interrupted")]) == 130
    assert "The fetched bytes are kept: the same command goes on" in capsys.readouterr().err


def events(folder: Path) -> dict[tuple[str, int], float]:
    """The scalars in the event files there, by tag and step: length, checksum, event, checksum."""
    found: dict[tuple[str, int], float] = {}
    for path in folder.iterdir():
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + length])
            found |= {(each.tag, event.step): each.simple_value for each in event.summary.value}
            at += 16 + length
    return found


@pytest.mark.timeout(120)
def test_a_sweep_trains_every_combination_from_one_copy_of_a_trained_model_for_each_seed(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a cluster of its own, which it ends: 6 s, most of it the start of the processes."""
    (text := tmp_path / "table.csv").write_text(labelled_table())
    parent = save_small_models(tmp_path) / "letters"
    line = ["sweep", "sentences", "--text", str(text), "--from", str(parent)]
    few = "--lora-rank 0,2 --weights-seed 1,2 --steps 2 --batch-size 2 --lr 0.01".split()
    assert main([*line, *few]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"All start from letters; its weights, .*, are stored 2 times\.", first)
    assert not (root / ".cluster.json").exists(), "its processes have ended"
    runs = all_runs(root)
    assert [row.split()[:2] for row in rows] == [[run.name, "done"] for run in reversed(runs)]
    asked = {(run.spec.weights_seed, run.spec.lora_rank) for run in runs}
    assert asked == {(1, 0), (1, 2), (2, 0), (2, 2)}
    for seed in (1, 2):
        of_seed = [run.folder for run in runs if run.spec.weights_seed == seed]
        assert len({(folder / PARENT / WEIGHTS).stat().st_ino for folder in of_seed}) == 1
    ((sweep, title),) = {(run.notes().sweep, run.notes().sweep_title) for run in runs}
    assert sweep
    assert title == "sentences: LoRA rank 0, 2 × weight seed 1, 2"


def test_runs_are_found_by_their_words(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done, waits = tiny_run(root), tiny_run(root, lr=0.5)
    train_to_end(done.folder)
    (root / "broken-1").mkdir()
    (root / "broken-1" / "spec.json").write_text("{}")
    every = printed(capsys, "runs")
    assert [row["name"] for row in every] == ["broken-1", waits.name, done.name]
    assert "cannot be read" in every[0]["fault"]
    assert [row["name"] for row in printed(capsys, "runs", "done")] == [done.name]
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "damaged" in lines[0]


def test_a_checkpoint_is_measured_as_then(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained_run(root, task="sort")
    values = dict(run.metrics().values())
    for step, folder in run.snapshots()[1:]:
        assert printed(capsys, "evaluate", str(folder))["value"] == pytest.approx(values[step])
    found = printed(capsys, "evaluate", run.name)
    assert (found["measure"], found["value"]) == ("exact match", run.status().value)
    assert found["held_out"]
    assert main(["evaluate", str(run.folder)]) == 0
    assert "On held-out data: exact match" in capsys.readouterr().out
    assert printed(capsys, "generate", str(run.folder), "hello").keys() == {"text", "ids"}
    waits = tiny_run(root)
    assert printed(capsys, "resume", str(waits.folder))["state"] == waits.status().state == "done"


def test_a_model_that_ships_without_its_text_is_measured_with_it_and_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = dataclasses.replace(RECIPES["reviews"], training={"steps": 1})
    monkeypatch.setitem(RECIPES, "reviews", few)
    rows = [f"a {word} film number {i},{word}" for i in range(30) for word in ("good", "bad")]
    table = tmp_path / "sentiment.csv"
    table.write_bytes("\r\n".join(["text,label", *rows, ""]).encode())
    (folder,) = make_shipped(["reviews"], tmp_path, tmp_path / "made")
    found = printed(capsys, "evaluate", str(folder), "--data", str(table))
    assert {found["measure"]: found["value"]} == peek(folder)[1]["metrics"]
    (other := tmp_path / "other.csv").write_text(table.read_text() + "a film,good\n")
    for line, sentence in {
        (): "This model is measured on a part of sentiment.csv: name it with --data.",
        ("--data", str(other)): "is not the sentiment.csv that this model was trained on",
    }.items():
        assert sentence in refused(capsys, "evaluate", str(folder), *line)
    said = refused(capsys, "evaluate", str(SHIPPED / "reverse"), "--data", str(table))
    assert "is known: leave --data out." in said


def test_other_tools_get_the_runs_metrics(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wishes = ["--steps", "8", "--metrics-csv", "--tensorboard"]
    ended = printed(capsys, "train", "reverse", *TINY, *wishes)
    assert (ended["name"], ended["state"], ended["step"]) == ("reverse-1", "done", 8)
    run = run_named(root, "reverse-1")
    with (run.folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    metrics = run.metrics()
    assert tuple(rows[0]) == COLUMNS
    assert [(int(r["step"]), float(r["loss"])) for r in rows if r["loss"]] == metrics.losses()
    found = events(run.folder / "tensorboard")
    for step, loss in metrics.losses():
        assert found["loss", step] == pytest.approx(loss)
    for step, value in metrics.values():
        assert found["held_out/exact_match", step] == pytest.approx(value)
