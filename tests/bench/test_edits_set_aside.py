"""Edits that do not fit a model, a text or each other, on the page that changes the pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from explorer import rereading
from explorer.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    History,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceToken,
)
from explorer.edits_in_links import KINDS, to_address
from explorer.library import open_model
from explorer.reading import read
from tests import apps
from tests.apps import said

D = "decoder.self_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("change/edits", **{"model": "letters", **address})


def edits(at: AppTest) -> str:
    return str(at.text_input(key="edits").value)


def test_what_does_not_fit_waits_for_a_text_that_it_fits() -> None:
    address = "1.2~k.d.a.3~h.d.0.1.z"
    at = page(edits=address, text="the cat and the hat")
    assert "set aside" not in said(at)
    at.text_input(key="text").set_value("the").run()
    assert "1 edit does not fit here and is set aside" in said(at)
    assert "(set aside). There is no key 3 here" in said(at)
    assert edits(at) == address
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert "set aside" not in said(at)
    assert "nobody looks at" in said(at)


FOREIGN = {
    "letters": ("encoder.self_attn", "decoder.cross_attn"),
    "reverse": ("decoder.self_attn", "decoder.cross_attn"),
}
OF_A_PART: dict[str, Callable[[str], Edit]] = {
    "head": lambda part: AblateHead(part, 0, 0),
    "attention": lambda part: AblateAttention(part, 0),
    "feed-forward": lambda part: AblateMlp(part, 0),
    "edge": lambda part: CutEdge(part, 0, 0, 0, 0),
    "preset": lambda part: PresetMask(part, 0, "none"),
    "cell": lambda part: MaskCell(part, 0, 0, 0, False),
    "key": lambda part: HideKey(part, 0, 0),
    "token": lambda part: ReplaceToken(part, 0, 0),
    "patch": lambda part: Patch(part, 0, 0, 0, "the cat"),
}


def test_every_kind_of_edit_is_tried_with_a_foreign_part() -> None:
    assert {type(of("")) for of in OF_A_PART.values()} == set(KINDS)


@pytest.mark.parametrize("kind", OF_A_PART)
@pytest.mark.parametrize(
    ("model", "part"), [(model, part) for model in FOREIGN for part in FOREIGN[model]]
)
def test_an_edit_of_attention_that_a_model_does_not_have_is_set_aside(
    model: str, part: str, kind: str
) -> None:
    address = to_address(History((OF_A_PART[kind](part),), 1))
    at = page(model=model, edits=address)
    assert "(set aside). This model has no such attention." in said(at)
    assert not at.button(key="ablate_head").disabled
    at.button(key="ablate_head").click().run()
    assert not at.exception
    assert edits(at).startswith(address.replace("1.1~", "1.2~")), "it waits, and another is made"


def test_patches_from_more_texts_than_may_be_are_set_aside() -> None:
    texts = ("the cat", "the hat", "and the", "cat the", "hat the")
    patches = tuple(Patch(D, 0, 0, 1, text) for text in texts)
    at = page(edits=to_address(History(patches, len(patches))), text="the cat")
    assert "5. Layer 0, head 0" in said(at)
    assert "(set aside). At most 4 texts are patched from" in said(at)
    assert not at.button(key="ablate_head").disabled


def test_cut_edges_wait_where_a_longer_text_has_no_room_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = open_model("letters")
    short, long = (len(read(found, text).target) for text in ("the cat", "the cat and the hat"))
    heads = found.config.n_heads
    assert 2 * short**2 <= long**2
    monkeypatch.setattr(rereading, "MOST_WEIGHTS", heads * long**2)
    cuts = (CutEdge(D, 0, 0, 1, 0), CutEdge(D, 1, 0, 1, 0))
    at = page(edits=to_address(History(cuts, 2)), text="the cat")
    assert "set aside" not in said(at)
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert not at.exception
    assert "1 edit does not fit here" in said(at)
    assert "too long to hold all weights of every layer with a cut edge" in said(at)
    assert not at.button(key="ablate_head").disabled
