"""The command line: what it writes is what the app opens, and errors are one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from explorer import library
from explorer.cli import main
from explorer.runs.run import all_runs, named
from tests.served import ROOT, wait_until

TINY = "--layers 1 --heads 2 --d-model 16 --d-ff 16 --batch-size 4 --warmup 2".split()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_train_writes_a_run_that_the_library_opens(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = "--steps 6 --lr 0.01 --schedule cosine --seed 3 --weights-seed 4 --norm rms".split()
    assert main(["train", "reverse", *TINY, *wishes]) == 0
    said = capsys.readouterr()
    assert "reverse-1 is done at step 6 of 6." in said.out
    assert "Held out: exact match" in said.out
    assert "6/6" in said.err, "the progress bar"
    assert said.out.splitlines()[-1] == "It opens in the app as reverse-1."
    spec = named(root, "reverse-1").spec
    assert (spec.weights_seed, spec.training.seed, spec.training.lr) == (4, 3, 0.01)
    assert (spec.model.norm, spec.model.d_model, spec.model.n_heads) == ("rms", 16, 2)
    opened = library.open_model("reverse-1", root)
    assert opened.config == spec.model
    assert opened.tokenizer.ids("abc")


def test_a_text_of_ones_own_is_learnt_and_continued(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 40)
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


def test_generate_lets_an_encoder_decoder_answer(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "reverse", *TINY, "--steps", "2"])
    folder = capsys.readouterr().out.splitlines()[-2]
    assert main(["generate", folder, "hello", "--top-k", "3", "--top-p", "0.9"]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "nothing"], "There is no task called 'nothing'"),
        (["train", "reverse", "--heads", "7"], "d_model 64 is not divisible by n_heads 7."),
        (["train", "reverse", "--lr", "-1"], "lr must be "),
        (["train", "reverse", "--d-model", "8192", "--layers", "64"], "make it narrower"),
        (["train", "characters"], "The task characters is made of a text"),
        (["train", "characters", "--text", "/absent"], "/absent cannot be read"),
        (["train", "characters", "--text", os.devnull], "The text has 0 characters"),
        (["resume", "absent"], "There is no run in the folder absent."),
        (["generate", "absent", "hi"], "There is no checkpoint folder absent."),
        (["checkpoints", "--only", "nothing"], "No model called 'nothing' ships"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], sentence: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert all_runs(root) == []


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["train"], ["train", "reverse", "--steps", "many"], ["--Nonsense"]]
)
def test_a_command_that_is_none_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_damaged_checkpoint_is_one_sentence(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["train", "reverse", *TINY, "--steps", "2"])
    (root / "reverse-1" / "checkpoint" / "model.safetensors").write_bytes(b"\0" * 100)
    capsys.readouterr()
    assert main(["generate", str(root / "reverse-1"), "hello"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_training_with_its_state_written_down(
    root: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "explorer", "train", "reverse", "--steps", "100000", *TINY]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: bool(all_runs(root)), "the run")
    run = all_runs(root)[0]
    wait_until(lambda: run.status().step >= 3, "the third step")
    process.send_signal(number)
    assert process.wait(30) == 0
    status = run.status()
    assert status.state == "interrupted"
    assert (run.folder / "state" / f"step-{status.step:06d}").is_dir()

    following = subprocess.Popen(
        [sys.executable, "-m", "explorer", "resume", str(run.folder)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: run.status().step > status.step, "another step")
    run.command("stop")
    assert following.wait(30) == 0
    assert run.status().state == "stopped"
