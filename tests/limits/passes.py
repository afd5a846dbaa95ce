"""Who meets the limits of computing: too long a text, too large a pass, work without an end."""

from pathlib import Path

import pytest

from explorer.app import throttle
from explorer.catalog import ModelError, opened_model, pass_budget, waiting
from explorer.inference.forward_pass import ForwardPassError, run_text
from tests.inference.hungry import million_positions


def refusal(folder: Path, text: str) -> str:
    """What the reader of the model in this folder reads of a text."""
    opened = opened_model.opened_from(folder, folder.name)
    with pytest.raises(ForwardPassError) as refused:
        run_text(opened, text)
    return str(refused.value)


def tokens(tmp_path: Path) -> str:
    with pytest.raises(ForwardPassError) as refused:
        run_text(million_positions(tmp_path / "model"), "a" * 300)
    return str(refused.value)


def size(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "1000")
    return refusal(small_models / "letters", "the cat")


def share(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "available_memory", lambda: 1_000)
    return refusal(small_models / "letters", "the cat")


def seconds(monkeypatch: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    monkeypatch.setenv("EXPLORER_LIMIT_WORK_SECONDS", "0")
    monkeypatch.setattr(throttle, "say", said.append)
    monkeypatch.setattr(throttle, "MOMENT", 0.0)
    with throttle.turn():
        while not said:
            waiting.step()
    return said[0]


def model(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_MODEL_BYTES", "1000")
    with pytest.raises(ModelError) as refused:
        opened_model.opened_from(small_models / "letters", "letters")
    return str(refused.value)


MEETINGS = {
    "model_bytes": model,
    "pass_tokens": tokens,
    "pass_bytes": size,
    "pass_share": share,
    "work_seconds": seconds,
}
