"""Settings that change while a run trains: the requested values, and the changes with their steps.

Anybody may request a value; the last request for a setting counts. The worker applies it after its
next step and records that step: a run that is resumed from an earlier step applies it there again,
and ends with the same weights.

    requested.json   values that are requested and not applied yet
    changes.jsonl    {"step": 120, "lr": 0.001}: from the update after that step on
    refused.json     {"step": 120, "fault": "…"}: why the last request was not applied
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.runs.spec import HOT_VALUES, RunSpec, is_step
from explorer.system.atomic_files import Lock, read_json_or_empty, write_json, write_text
from models.file_text import parse_json

REQUESTED, CHANGES, REFUSED = "requested.json", "changes.jsonl", "refused.json"
LOCK, LONGEST_FAULT = "requested.lock", 300
PATIENCE = 5.0
"""Seconds to wait for another request to be written, which takes a millisecond."""


@dataclass(frozen=True)
class Change:
    """The values that apply from the update after this step on."""

    step: int
    values: Mapping[str, Any]


def request(folder: Path, spec: RunSpec, values: Mapping[str, Any]) -> None:
    """Request these values. ValueError says in one sentence why they are invalid; OSError."""
    if unknown := sorted(values.keys() - set(HOT_VALUES)):
        raise ValueError(f"{unknown[0][:40]} cannot change while a run trains.")
    if fault := spec.with_hot(values).fault():
        raise ValueError(fault)
    with Lock(folder / LOCK) as lock:
        if not lock.acquire(PATIENCE):
            raise ValueError("Others are changing this run; try again.")
        write_json(folder / REQUESTED, {**requested_values(folder), **values})


def requested_values(folder: Path) -> dict[str, Any]:
    """The values that are requested and not applied yet."""
    values = read_json_or_empty(folder / REQUESTED)
    return {name: values[name] for name in HOT_VALUES if name in values}


def refusal(folder: Path) -> str:
    """Why the last request was not applied; empty if it was."""
    refused = read_json_or_empty(folder / REFUSED)
    step, fault = refused.get("step"), refused.get("fault")
    if not is_step(step) or not isinstance(fault, str):
        return ""
    return f"The change was not applied after step {step:,}: {fault[:LONGEST_FAULT]}"


def apply_request(folder: Path, spec: RunSpec, step: int) -> bool:
    """Apply the requested values after this step; returns whether any value changed.

    This drops the changes at later steps: a kill has undone those steps, and from here on the
    run takes another course.
    """
    if not (folder / REQUESTED).exists():
        return False
    with Lock(folder / LOCK) as lock:
        if not lock.acquire():
            return False
        values, before = requested_values(folder), changes(folder)
        now = spec_at(spec, before, step)
        values = {name: value for name, value in values.items() if now.hot[name] != value}
        fault = now.with_hot(values).fault()
        is_new = bool(values) and fault is None
        if fault:  # valid with the first settings, invalid with those in force now
            write_json(folder / REFUSED, {"step": step, "fault": fault})
        else:
            (folder / REFUSED).unlink(missing_ok=True)
        if is_new:
            past = [change for change in before if change.step <= step]
            write_text(
                folder / CHANGES,
                "".join(
                    json.dumps({"step": change.step, **change.values}) + "\n"
                    for change in [*past, Change(step, values)]
                ),
            )
        (folder / REQUESTED).unlink()
    return is_new


def changes(folder: Path) -> list[Change]:
    """The changes of a run in their order; a damaged line is skipped."""
    try:
        lines = (folder / CHANGES).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    valid = [change for line in lines if (change := _change(line)) is not None]
    return sorted(valid, key=lambda change: change.step)


def spec_at(spec: RunSpec, changes: Iterable[Change], step: int) -> RunSpec:
    """The settings in force for the update after this step."""
    for change in changes:
        changed = spec.with_hot(change.values)
        if change.step <= step and changed.fault() is None:
            spec = changed
    return spec


def _change(line: str) -> Change | None:
    try:
        values = parse_json(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not is_step(values.get("step")):
        return None
    return Change(values["step"], {name: values[name] for name in HOT_VALUES if name in values})
