"""What a reader takes along: files and a page that needs no server."""

import csv
import io
import json
from pathlib import Path

import numpy as np

from explorer.catalog import opened_model
from explorer.inference.forward_pass import run_text
from tests.browser.visiting import Visitor

TEXT = "the black cat"


def test_a_view_is_saved_as_pictures_numbers_and_an_offline_page(
    visitor: Visitor, tmp_path: Path
) -> None:
    """That the page is alive offline is proven in tests/export/test_offline_page.py."""
    page = visitor.open(f"/attention?model=translation&part=Cross&text={TEXT}&layer=0&head=1")
    visitor.drawn("attention_head")
    visitor.widget("export").get_by_role("button").first.click()
    files = {}
    for ending in ("png", "svg", "csv", "json", "npz", "html"):
        with page.expect_download() as download:
            visitor.widget(f"export_{ending}").get_by_role("button").click()
        files[ending] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[ending])
        assert files[ending].suffix == f".{ending}"
    weights = run_text(opened_model.open_model("translation"), TEXT).weights(
        "decoder.cross_attn", 0, 1
    )
    table = list(csv.reader(io.StringIO(files["csv"].read_text("utf-8-sig"))))
    assert [[float(cell) for cell in row[1:]] for row in table[1:]] == weights.tolist()
    assert json.loads(files["json"].read_text())["about"]["sentence"] == TEXT
    with np.load(files["npz"], allow_pickle=False) as found:
        assert np.array_equal(found["values"], weights.numpy())
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files["svg"].read_bytes()
    assert b"Content-Security-Policy" in files["html"].read_bytes()
