"""Settings that a run takes on while it trains: what is asked for, and what was taken on when.

Anybody may ask, and of each setting the last value asked for counts. The worker takes it on
after its next step and writes down which step that was: a run that is resumed from an earlier
one takes it on there again, and ends with the same weights.

    requested.json   what is asked for and not taken on yet
    changes.jsonl    {"step": 120, "lr": 0.001}: from the update after that step on
    refused.json     {"step": 120, "fault": "…"}: why the last that was asked for was not taken on
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.runs.spec import HOT_VALUES, RunSpec, is_step
from explorer.system.atomic_files import Lock, read_json_or_empty, write_json, write_text

REQUESTED, CHANGES, REFUSED = "requested.json", "changes.jsonl", "refused.json"
LOCK, LONGEST_FAULT = "requested.lock", 300
PATIENCE = 5.0
"""Seconds to wait for another who asks at the same time, and needs a thousandth of one."""


@dataclass(frozen=True)
class Change:
    """What was taken on after this step."""

    step: int
    values: Mapping[str, Any]


def request(folder: Path, spec: RunSpec, values: Mapping[str, Any]) -> None:
    """Ask for these values. ValueError, in one sentence, where they are none; OSError."""
    if unknown := sorted(values.keys() - set(HOT_VALUES)):
        raise ValueError(f"{unknown[0][:40]} cannot change while a run trains.")
    if fault := spec.with_hot(values).fault():
        raise ValueError(fault)
    with Lock(folder / LOCK) as lock:
        if not lock.acquire(PATIENCE):
            raise ValueError("Others are changing this run; try again.")
        write_json(folder / REQUESTED, {**requested(folder), **values})


def requested(folder: Path) -> dict[str, Any]:
    """What is asked for and not taken on yet."""
    values = read_json_or_empty(folder / REQUESTED)
    return {name: values[name] for name in HOT_VALUES if name in values}


def refusal(folder: Path) -> str:
    """Why the last values that were asked for were not taken on; empty where they were."""
    refused = read_json_or_empty(folder / REFUSED)
    step, fault = refused.get("step"), refused.get("fault")
    if not is_step(step) or not isinstance(fault, str):
        return ""
    return f"The change was not applied after step {step:,}: {fault[:LONGEST_FAULT]}"


def take_on(folder: Path, spec: RunSpec, step: int) -> bool:
    """Take on after this step what is asked for; whether there was anything.

    Changes at later steps are forgotten: a kill has undone those steps, and from here on the
    run goes another way.
    """
    if not (folder / REQUESTED).exists():
        return False
    with Lock(folder / LOCK) as lock:
        if not lock.acquire():
            return False
        values, before = requested(folder), changes(folder)
        now = spec_at(spec, before, step)
        values = {name: value for name, value in values.items() if now.hot[name] != value}
        fault = now.with_hot(values).fault()
        is_new = bool(values) and fault is None
        if fault:  # it suits the settings of the beginning, and not those of now
            write_json(folder / REFUSED, {"step": step, "fault": fault})
        else:
            (folder / REFUSED).unlink(missing_ok=True)
        if is_new:
            kept = [*(each for each in before if each.step <= step), Change(step, values)]
            lines = (json.dumps({"step": each.step, **each.values}) + "\n" for each in kept)
            write_text(folder / CHANGES, "".join(lines))
        (folder / REQUESTED).unlink()
    return is_new


def changes(folder: Path) -> list[Change]:
    """What was taken on, the first first; a damaged line is skipped."""
    try:
        lines = (folder / CHANGES).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = [each for line in lines if (each := _change(line)) is not None]
    return sorted(found, key=lambda each: each.step)


def spec_at(spec: RunSpec, changes: Iterable[Change], step: int) -> RunSpec:
    """The settings in force for the update after this step."""
    for each in changes:
        changed = spec.with_hot(each.values)
        if each.step <= step and changed.fault() is None:
            spec = changed
    return spec


def _change(line: str) -> Change | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not is_step(values.get("step")):
        return None
    return Change(values["step"], {name: values[name] for name in HOT_VALUES if name in values})
