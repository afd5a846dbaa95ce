"""The child process: opens a stranger's tokenizer and answers, one line of JSON for each.

`process` starts it as `python -m explorer.text.published.child`. Before it reads a stranger's byte,
it bounds its own memory and gives up the right to write files and core dumps. Each answer has a
budget of computing time; when that is spent, the kernel ends the process, whatever library is busy.
When the app ends, the child's input ends, and the child with it.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import all_settings, named_tokens, token_text
from explorer.text.published.engine import Engine, rows_of, steps_to_json
from explorer.text.published.library_engine import LibraryEngine
from explorer.text.published.steps import LibrarySteps
from explorer.text.published.tokenizer_families import (
    ROLES,
    Roles,
    byte_level,
    more_special,
    reading_of,
    special_roles,
    whole_file,
    word_pieces,
)
from explorer.text.published.tokenizer_files import Files, work_of
from explorer.text.published.unfollowed import unfollowed

ROOM, ROOM_PER_BYTE, MOST_ROOM = 160_000_000, 60, 2_000_000_000
"""Bytes of memory for reading: a constant, more for each byte of the files, and the most."""

READING_SECONDS = 0.9


def main() -> None:
    task = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no answer
    files: dict[str, int] = task["files"]
    _limit(work_of((name, os.fstat(number).st_size) for name, number in files.items()))
    engine: Engine | None = None

    def opening() -> dict[str, Any]:
        nonlocal engine
        engine = open_engine(files, task["family"])
        return engine.facts()

    _say(out, _within(float(task["seconds"]), opening))
    for number in files.values():
        os.close(number)
    for line in sys.stdin.buffer:
        if engine is None:
            return
        _say(out, _within(READING_SECONDS, _work(engine, json.loads(line))))


def open_engine(files: Files, family: str) -> Engine:
    """The engine for the files of one complete form; TextError says why there is none."""
    settings = all_settings(files)
    engine = _engine(files, family, settings)
    named = named_tokens(settings, ROLES)
    engine.named = {name: token_text(token) or "" for name, token in named.items()}
    engine.unfollowed = unfollowed(settings, family, engine)
    return engine


def _engine(files: Files, family: str, settings: dict[str, Any]) -> Engine:
    way = reading_of(family, settings)
    roles = special_roles(way, settings)
    if not any(name in files for name in ("tokenizer.json", "vocab.txt", "merges.txt")):
        return _engine_of_pieces(files, family, settings, roles)
    if "tokenizer.json" in files:
        stored, roles = whole_file(files, family, settings)
    elif "vocab.txt" in files:
        stored = word_pieces(files, way, settings, roles)
    else:
        stored = byte_level(files, way, settings, roles)
    return LibraryEngine(stored, roles, more_special(settings))


def _engine_of_pieces(files: Files, family: str, settings: dict[str, Any], roles: Roles) -> Engine:
    if "source.spm" in files:  # sentencepiece is loaded here alone: few tokenizers need it
        from explorer.text.published.marian_engine import MarianEngine

        return MarianEngine(files, settings, roles)
    from explorer.text.published.piece_model import piece_file

    stored, roles = piece_file(files, family, settings)
    return LibraryEngine(stored, roles, more_special(settings))


def _work(engine: Engine, request: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    match request["do"]:
        case "encode":
            return lambda: {"tokens": rows_of(engine.encode(request["text"], request["pair"]))}
        case "ids":
            return lambda: {"ids": engine.many_ids(request["texts"], bool(request["special"]))}
        case "prompt":
            return lambda: {"tokens": rows_of(engine.encode_prompt(request["text"]))}
        case "render":
            return lambda: {"text": _render(engine, request)}
        case "steps" if isinstance(engine, LibraryEngine):
            return lambda: steps_to_json(LibrarySteps(engine, request["text"]).all())
        case "steps":
            return lambda: steps_to_json(engine.steps(request["text"]))
        case "decode":
            return lambda: {"text": engine.decode(request["ids"])}
        case "labels":
            return lambda: {"labels": [engine.label(number) for number in request["ids"]]}
        case _:
            return lambda: {"id": engine.id_of(request["entry"])}


def _render(engine: Engine, request: Mapping[str, Any]) -> str:
    from explorer.text.published.chat_template import render  # few tokenizers need it

    special = engine.special
    names = {f"{role}_token": special.texts[number] for role, number in special.roles.items()}
    names |= engine.named
    prompt = request["generation"]
    return render(request["template"], request["messages"], names, add_generation_prompt=prompt)


def _within(seconds: float, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, or why there is none; with `over` this process ends."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return work()
    except TextError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it needs more memory than it may use.", "over": True}
    except BaseException:  # noqa: BLE001  a panic of the library is no Exception
        return {"error": "it does not work as a tokenizer file must.", "over": True}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _say(out: Any, answer: Mapping[str, Any]) -> None:
    left = memoryview(json.dumps(answer).encode() + b"\n")
    while left:
        left = left[out.write(left) :]
    if answer.get("over"):
        os._exit(1)


def _limit(to_read: int) -> None:
    """Limit this process to the memory that reading a file of this size can need."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as order:
        order.write("1000")  # when memory runs out, the system ends this process, not the app
    try:
        with open("/proc/self/statm", "rb") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
    except OSError:
        used = 1_000_000_000  # a guess where the system does not say
    for what, most in (
        (resource.RLIMIT_AS, used + min(ROOM + ROOM_PER_BYTE * to_read, MOST_ROOM)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
