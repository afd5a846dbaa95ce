"""The lines of Decoding where the prompt holds the token that fills up: nobody looks at it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer import decoding, library
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests.panels.pasting import panel
from tests.shelf import WORDS, put


def test_what_fills_up_a_prompt_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, words = tmp_path / "shelf", word_tokenizer(WORDS, DECODER)
    put(folder, "filled", words, "the cat dog", kind="decoder", tie_embeddings=False)
    cat = words.encode("the cat dog")[-2].id
    config = folder / "filled" / "config.json"
    stored = json.loads(config.read_text())
    config.write_text(json.dumps({**stored, "pad_id": cat}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    page = panel("look/decoding", folder, None, model="filled", branches=f"0d9.1f{cat}")
    keep = page.made["keep"][0].tolist()
    opened = library.open_model("filled")
    begun = [token.id for token in decoding.start_of(opened, "the cat dog").begun]
    assert keep[: len(begun)] == [token != cat for token in begun]
    assert not all(keep[: len(begun)])
    assert all(keep[len(begun) :])
    standing = decoding.stand(opened, "the cat dog", page.made["ids"][0, len(begun) :].tolist())
    assert (page.made["logits"][0] - standing.logits).abs().nan_to_num().max() < 1e-5
