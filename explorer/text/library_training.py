"""How the library trains a tokenizer: plain data in, plain data out.

The library cannot be stopped, so a child process does a long training. The thread that waits
for it checks now and then whether the reader has left, and then ends the child.
Nothing here imports numpy: the children that open strangers' tokenizers load this module too, and
would take three times as long to start.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Semaphore
from typing import Any

from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library
from tokenizers.trainers import BpeTrainer, UnigramTrainer

from explorer.system import limits, operating_system
from explorer.system.child_exchange import exchange
from explorer.system.cooperative import CHECK_SECONDS, offload
from explorer.system.operating_system import child_environment
from explorer.text.checked_text import TextError

BPE, WORDPIECE = "Byte-level BPE", "WordPiece"
GOES_ON, UNKNOWN = "##", "[UNK]"
NO_TEXT = "There is no text to train on yet: type one or choose another."
NORMALIZER = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
"""The normalizer of WordPiece: BERT's, but it keeps capitals and accents."""
LONGEST_WORD = 1_000
"""Bytes or letters. The library's time grows with their square, so a longer word (a genome
without a space) is split."""
_PIECES = pre_tokenizers.Split(Regex(rf"[\s\S]{{{LONGEST_WORD}}}"), "isolated")
SPLITTERS: dict[str, pre_tokenizers.PreTokenizer] = {
    BPE: pre_tokenizers.ByteLevel(add_prefix_space=False),
    WORDPIECE: pre_tokenizers.BertPreTokenizer(),
}
WORD_SPLITTERS = {
    name: pre_tokenizers.Sequence([splitter, _PIECES]) for name, splitter in SPLITTERS.items()
}
"""They split a text into the words whose pairs are counted."""
UNIGRAM_SPLITTER = pre_tokenizers.Sequence(
    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
)

LONG_TEXT, LONG_WORDS = 500_000, 30_000
"""Characters of a text, and of its different words; a training with more takes a moment."""
TRAININGS_AT_ONCE = 2
CHILD_BYTES = 2_000_000_000
"""Bytes of memory that a child may take."""
ROOT = Path(__file__).resolve().parents[2]

_turns = Semaphore(TRAININGS_AT_ONCE)


def learned_merges(
    parts: Sequence[str], algorithm: str, options: dict[str, Any], lowercase: bool = False
) -> dict[str, Any]:
    """The `vocab` and the `merges` that the library learns, and how often each of `words` occurs.

    `options` are those of the library's trainer.
    """
    return _train("merges", parts, [[*parts], algorithm, options, lowercase])


def learned_pieces(text: str, options: dict[str, Any]) -> list[tuple[str, float]]:
    return [(piece, score) for piece, score in _train("pieces", [text], [text, options])]


def _merges(
    parts: list[str], algorithm: str, options: dict[str, Any], lowercase: bool
) -> dict[str, Any]:
    library = Library(models.BPE())
    library.normalizer = normalizers.Lowercase() if lowercase else None
    library.pre_tokenizer = WORD_SPLITTERS[algorithm]
    trainer = BpeTrainer(show_progress=False, **options)
    library.train_from_iterator(parts, trainer)
    stored = json.loads(library.to_str())["model"]
    words = json.loads(trainer.__getstate__())["BpeTrainer"]["words"]
    return {"vocab": stored["vocab"], "merges": stored["merges"], "words": words}


def _pieces(text: str, options: dict[str, Any]) -> list[tuple[str, float]]:
    library = Library(models.Unigram())
    library.pre_tokenizer = UNIGRAM_SPLITTER
    library.train_from_iterator([text], UnigramTrainer(show_progress=False, **options))
    pieces: list[tuple[str, float]] = json.loads(library.to_str())["model"]["vocab"]
    return pieces


TRAININGS: dict[str, Callable[..., Any]] = {"merges": _merges, "pieces": _pieces}


def _train(name: str, parts: Sequence[str], arguments: list[Any]) -> Any:
    words = {word for part in parts for word in part.split()}
    is_long = sum(map(len, parts)) > LONG_TEXT or sum(map(len, words)) > LONG_WORDS
    is_apart = operating_system.IS_POSIX and is_long  # Windows does not wait for pipes
    return _in_a_child(name, arguments) if is_apart else TRAININGS[name](*arguments)


def _in_a_child(name: str, arguments: list[Any]) -> Any:
    """The answer of a child process; a few children train at once, the others wait."""
    with offload() as check_cancelled:
        while not _turns.acquire(timeout=CHECK_SECONDS):
            check_cancelled()
        try:
            request = json.dumps([name, limits.WORK_SECONDS.most, CHILD_BYTES, *arguments])
            return _answer(request.encode(), check_cancelled)
        finally:
            _turns.release()


def _answer(request: bytes, check_cancelled: Callable[[], None]) -> Any:
    def wait(_: int) -> float:
        check_cancelled()
        return CHECK_SECONDS

    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "explorer.text.library_training"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=ROOT,
            env=child_environment() | {"TOKENIZERS_PARALLELISM": "false"},
            start_new_session=True,
        )
    except OSError:
        raise TextError("This machine starts no process just now; try again in a minute.") from None
    with child:
        try:
            answer = exchange(child, request + b"\n", wait)
        except BaseException:  # for example, the reader has left
            child.kill()
            raise
        code = child.wait()
    if code == 0:
        return json.loads(answer)
    if -code in operating_system.KILLED:
        raise TextError(limits.WORK_SECONDS.refusal())
    raise TextError("The training needs more memory than it may use: shorten the text.")


def main() -> None:
    """The child: one training by its name."""
    name, seconds, room, *arguments = json.loads(sys.stdin.buffer.readline())
    operating_system.be_nice(5)  # the server comes first
    operating_system.limit(CPU=max(1, seconds), AS=room, CORE=0, FSIZE=0)
    sys.stdout.write(json.dumps(TRAININGS[name](*arguments)) + "\n")


if __name__ == "__main__":
    main()
