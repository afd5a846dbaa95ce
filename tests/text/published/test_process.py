"""The child processes: few, bounded, started again, never seen by the rest of the app."""

import contextlib
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from explorer.system import child_exchange
from explorer.text import PublishedTokenizer, TextError, open_published
from explorer.text.published.process import CHILDREN, MAX_CHILDREN, ChildError, ChildPool
from explorer.text.published.tokenizer_files import find_tokenizer, open_files
from tests.calls import watched
from tests.served import wait_until
from tests.source import ROOT
from tests.text.published.conftest import Made, children
from tests.text.published.tokenizer_folders import FOLDERS

Only = tuple[PublishedTokenizer, psutil.Process]
NAMES = ("bert", "gpt2", "t5", "marian", "opt")


def test_few_children_are_kept_and_all_tokenizers_go_on_in_many_threads(made: Made) -> None:
    several = {name: open_published(made(name), FOLDERS[name][0]) for name in NAMES}
    expected = {name: tokenizer.ids("the cat") for name, tokenizer in several.items()}
    assert len(children()) == len(CHILDREN) == MAX_CHILDREN

    def read(name: str) -> bool:
        return all(several[name].ids("the cat") == expected[name] for _ in range(2))

    with ThreadPoolExecutor(2 * len(NAMES)) as threads:
        assert all(threads.map(read, NAMES * 2, timeout=60))
    assert len(children()) <= MAX_CHILDREN
    CHILDREN.close()
    assert not children()
    assert several["bert"].ids("the cat")
    for _ in range(3):
        open_published(made("bert"), "bert")
    assert len(children()) == 1, "the same folder is opened once"


@pytest.fixture
def only(made: Made) -> Only:
    """A tokenizer and its child, beside which there is none."""
    CHILDREN.close()
    tokenizer = open_published(made("gpt2"), "gpt2")
    (child,) = children()
    return tokenizer, child


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux has it")
def test_where_memory_ends_the_child_is_the_first_to_end(only: Only) -> None:
    _, child = only
    assert Path(f"/proc/{child.pid}/oom_score_adj").read_text().strip() == "1000"


def test_a_child_that_died_is_started_again(only: Only) -> None:
    tokenizer, child = only
    before = tokenizer.ids("the cat")
    child.send_signal(signal.SIGSEGV)
    child.wait(5)
    assert tokenizer.ids("the cat") == before


def test_a_child_that_dies_is_a_sentence(only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, child = only
    child.suspend()
    with monkeypatch.context() as patch:
        watching = watched(child_exchange._write, lambda *_: child.kill())
        patch.setattr(child_exchange, "_write", watching)
        with pytest.raises(TextError, match=r"^The tokenizer cannot read this text: .*\.$"):
            tokenizer.encode("the cat")
    assert tokenizer.encode("the cat")


def test_a_child_that_does_not_answer_is_ended(only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, child = only
    child.suspend()
    with monkeypatch.context() as impatient:
        impatient.setattr("explorer.text.published.process.GRACE", -3.0)
        with pytest.raises(TextError, match="takes too long"):
            tokenizer.encode("the cat" * 2_000)
    assert tokenizer.encode("the cat")


def test_a_child_gives_up_what_it_needs_not(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    CHILDREN.close()
    open_published(made("gpt2"), "gpt2")
    (child,) = children()
    assert "SOME_TOKEN" not in child.environ()
    assert child.memory_info().rss < 100_000_000
    if hasattr(child, "rlimit"):  # not every system tells the limits of a process
        assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert child.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
        assert max(child.rlimit(psutil.RLIMIT_AS)) < 600_000_000


def ended(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def test_children_end_with_the_app(made: Made) -> None:
    code = (
        "import os, sys, signal; from pathlib import Path; from explorer.text import *\n"
        "open_published(Path(sys.argv[1]), 'gpt2'); import psutil\n"
        "print(psutil.Process().children()[0].pid, flush=True); os.kill(os.getpid(), 9)"
    )
    call = [sys.executable, "-c", code, str(made("gpt2"))]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    pid = int(done.stdout)
    wait_until(lambda: ended(pid), "the end of the child")


def test_no_place_is_lost_to_a_tokenizer_that_cannot_be_opened(made: Made, tmp_path: Path) -> None:
    keep = ChildPool(most=1)
    (tmp_path / "tokenizer.json").write_text("{}")
    nothing = keep.child(find_tokenizer(tmp_path, "gpt2"))
    with pytest.raises(ChildError, match="no model"), nothing:
        pass
    assert len(keep) == 0
    with keep.child(find_tokenizer(made("gpt2"), "gpt2")) as child:
        assert child.facts["kind"] == "bytes"
    keep.close()
    assert len(keep) == 0


def test_files_that_changed_are_not_taken_for_the_same(made: Made, tmp_path: Path) -> None:
    for file in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / file).write_bytes((made("bert") / file).read_bytes())
    tokenizer = open_published(tmp_path, "bert")
    CHILDREN.close()
    with open(tmp_path / "vocab.txt", "ab") as file_:
        file_.write(b"more\n")
    with pytest.raises(TextError, match="changed on the disk; open the model again"):
        tokenizer.encode("the cat")
    assert open_published(tmp_path, "bert").vocab_size == tokenizer.vocab_size + 1


def test_nothing_stays_open(made: Made) -> None:
    CHILDREN.close()
    before = psutil.Process().num_fds()
    open_published(made("gpt2"), "gpt2").encode("the")
    CHILDREN.close()
    assert psutil.Process().num_fds() == before


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "model"
    secret.write_text("[UNK]\nroot\n")
    folder.mkdir()
    (folder / "vocab.txt").write_text("[UNK]\nword\n")
    found = find_tokenizer(folder, "bert")
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to(secret)
    with pytest.raises(TextError), open_files(found):
        pass
    with pytest.raises(TextError, match="link out of the folder, which is not followed"):
        find_tokenizer(folder, "bert")


def test_a_child_starts_without_what_it_never_needs() -> None:
    """Numpy alone takes twice the time of all the rest."""
    loaded = "import sys, explorer.text.published.child; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, check=True)
    assert not {"numpy", "torch", "streamlit"} & set(said.stdout.decode().split())
