"""The code panel of every view: its lines run as pasted and give the page's numbers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from explorer.analysis.forward_pass.stages import stages_of
from explorer.catalog import available_models, opened_model
from explorer.catalog.shipped import SHIPPED
from explorer.inference import continuation
from explorer.interventions import edits
from explorer.interventions.address_text import to_address
from explorer.text import word_tokenizer
from explorer.text.token import DECODER
from explorer.views.input.scheme import ODD_WIDTH
from models import trace
from tests.panels import view_checks as checks
from tests.panels.pasting import as_array, panel
from tests.panels.view_checks import beams, before_after, drawn
from tests.tiny import WORDS, save_forced_to_begin, save_model

ALL = ("translation", "letters", "reviews", "reverse", "bert", "gpt2", "t5")
SOME, FEW = ("letters", "t5"), ("translation", "bert")
WRITING, DECODERS = ("translation", "gpt2"), ("letters", "gpt2")
masks = drawn(mask_both="mask", scores="scores", weights="weights")
SCHEME, ORDER, LONGER = "input/positions", "Permutation", "Length extrapolation"
SCHEMES = ("Sinusoidal", "Rotary", "Relative", "ALiBi")
DRAWN = {"temperature": "1.5", "top_k": "7", "top_p": "0.9", "seed": "4"}
OTHER_MODEL = {"with": "Another model", "text": "the dog"}
OF_AN_ENCODER = {**OTHER_MODEL, "part": "Encoder", "other_model": "letters"}
PAIR = {"text": "the cat was good", "pair": "the dog was bad"}
CUT_AND_MASKED = "1.2~h.e.0.1.m~m.e.0.n.1"
D = "decoder.self_attn"
OF_MOST_KINDS = to_address(
    edits.EditHistory(
        (
            edits.AblateHead(D, 0, 1),
            edits.AblateMlp(D, 0, "mean"),
            edits.MaskCell(D, None, 2, 1, False),
            edits.HideKey(D, 1, 0),
            edits.CutEdge(D, 1, 1, 2, 0),
            edits.ReplaceToken(D, 1, 200),
        ),
        6,
    )
)
EDITED = {"with": "Your interventions"}
WHY_AFTER = {"pair_view": "Why", "edits": OF_MOST_KINDS, "layer": "1", "head": "1"}
ADJUSTED: tuple[dict[str, str], ...] = (
    {},
    {"heads": "Mean", "weighting": "Value norm"},
    {"heads": "Max of all layers", "hide_first": "true"},
    {"mass": "50", "words": "true", "colours": "Row", "log": "true"},
)
STEERED_BY_HEAD = {"steer_by": "Head output", "steer_strength": "-3.5"}
STEERED: dict[str, tuple[str, str]] = {
    "letters": ("the cat and the hat", "the hat and the cat"),
    "reviews": ("the cat", "the dog"),
    "gpt2": ("5 17 3", "5 9 8 3"),
    "bert": ("the cat [MASK] good", "a dog is [MASK] good"),
}
BOTH = ("text", "corrupted")
READERS = ("letters", "bert")
"""They read words, not token IDs."""
NOISED = {"patched_value": "Attention output", "patch_way": "Noising", "patch_number": "Metric"}
TRACED: tuple[dict[str, str], ...] = ({}, NOISED)

PERMUTED = {"lab": ORDER, "order_of": "Custom order"}
ENCODER_IN_3D = {"of_stack": "Encoder", "in_3d": "true"}
STEPS, CAT = {"up_to": "values"}, {"part": "Encoder", "text": "the cat"}
INTO = {"layer": "1", "head": "0", "path_end": "Into this head", "path_reads": "Values"}
PATHS = ({"layer": "0", "head": "1"}, INTO)


def each_once(
    ways: tuple[dict[str, str], ...], names: tuple[str, ...]
) -> Iterator[tuple[dict[str, str], str]]:
    """Pairs in which every way and every name occurs."""
    for at in range(max(len(ways), len(names))):
        yield ways[at % len(ways)], names[at % len(names)]


View = tuple[str, dict[str, str], checks.Check, tuple[str, ...]]
VIEWS: list[View] = [
    ("overview/overview", {}, checks.start, ALL),
    ("input/tokens", {}, checks.tokens, (*SOME, "bert")),
    ("input/embedding_space", {}, checks.space, (*FEW, "gpt2")),
    ("input/embedding_space", {"space_of": "Residual stream", "near": "0"}, checks.space, FEW),
    ("input/embedding_space", {"space_of": "Unembedding"}, checks.space, ("letters",)),
    ("input/embedding_space", ENCODER_IN_3D, checks.space, ("t5",)),
    ("attention/query_key", {"pair_view": "Why"}, checks.why, SOME),
    ("attention/query_key", WHY_AFTER, checks.why, ("letters",)),
    ("attention/query_key", {"pair_view": "Products"}, checks.pair, SOME),
    ("attention/query_key", {"pair_view": "Value"}, checks.pair, ("bert",)),
    ("forward_pass/logit_lens", {}, checks.lens, (*FEW, "reviews", "gpt2")),
    ("attention/masks", {"example": "Your sentence"}, masks, SOME),
    ("attention/masks", {"example": "A padded batch"}, masks, FEW),
    ("attention/masks", {"example": "I am a student"}, drawn(mask_both="mask"), ("letters",)),
    ("attention/heads", {"side": "Finder"}, checks.finder, FEW),
    ("attention/heads", {"side": "Similarity"}, checks.similarity, SOME),
    ("attention/heads", {"side": "Map of heads"}, checks.heads_map, ("t5",)),
    ("attention/heads", {"side": "Distribution"}, checks.deciles, ("letters",)),
    ("attention/heads", {"side": "Sinks"}, checks.sinks, ("reviews",)),
    ("attention/heads", {"side": "Rollout", "part": "Decoder"}, drawn(rollout="shares"), FEW),
    ("attention/heads", {"side": "Flow", "part": "Decoder"}, checks.flow, SOME),
    ("attention/heads", {"side": "Attribution"}, drawn(attribution="shares"), (*SOME, "reviews")),
    ("attention/head_steps", STEPS | CAT, checks.stages, FEW),
    ("attention/head_steps", STEPS, checks.stages, DECODERS),
    ("generation/generation", DRAWN, checks.choice, WRITING),
    ("generation/generation", {**DRAWN, "branches": "0d9.1f7"}, checks.choice, SOME),
    ("generation/generation", {"way": "Beam search", "beams": "3", "length": "4"}, beams, WRITING),
    ("generation/generation", {"way": "Teacher forcing"}, checks.forced, SOME),
    *[(SCHEME, {"scheme": name}, checks.scheme, ("letters",)) for name in SCHEMES],
    (SCHEME, {}, checks.scheme, ("bert",)),
    (SCHEME, {"other_scheme": "Sinusoidal"}, checks.scheme, ("t5",)),
    (SCHEME, {"scheme": "Rotary", "other_scheme": "ALiBi"}, checks.scheme, ("letters",)),
    (SCHEME, {"scheme": "None", "other_scheme": "Rotary"}, checks.scheme, ("letters",)),
    (SCHEME, {"similar_by": "Cosine similarity"}, checks.scheme, ("bert",)),
    (SCHEME, {"table_width": ODD_WIDTH}, checks.scheme, ("letters",)),
    (SCHEME, {"lab": "Doubled exponent"}, checks.doubled, ("letters",)),
    (SCHEME, PERMUTED, drawn(order_map_1="weights"), ("letters",)),
    (SCHEME, {**PERMUTED, "scheme": "None"}, drawn(order_map_1="weights"), ("reviews",)),
    (SCHEME, {"lab": LONGER}, checks.longer, ("letters", "translation")),
    (SCHEME, {"lab": LONGER, "scheme": "Rotary", **PAIR}, checks.longer, ("bert",)),
    ("training/training", {"task": "reverse"}, checks.training, ("letters",)),
    ("models/checkpoints", {"show": "Parameters"}, checks.ledger, FEW),
    ("models/checkpoints", {"show": "Parameters", "ledger": "paper"}, checks.ledger, ("letters",)),
    ("models/checkpoints", {"show": "Weights"}, checks.weights, FEW),
    ("models/checkpoints", {"show": "Norms"}, checks.norms, ("bert",)),
    ("models/checkpoints", {"show": "Singular values"}, checks.spectrum, ("t5",)),
    ("models/checkpoints", {"show": "Heads"}, checks.statistics, SOME),
    ("models/checkpoints", {"show": "Diagnostics"}, checks.doctor, FEW),
    *[
        ("attention/attention", {**look, "head": "1"}, drawn(attention_head="weights"), (model,))
        for look, model in zip(ADJUSTED, (*SOME, *FEW), strict=True)
    ],
    ("experiments/interventions", {"edits": "1.1~h.d.0.1.z"}, before_after, ("gpt2", "t5")),
    ("experiments/interventions", {"edits": CUT_AND_MASKED}, before_after, ("bert", "reviews")),
    ("experiments/interventions", {"edits": OF_MOST_KINDS}, before_after, ("letters",)),
    ("experiments/compare", {**EDITED, "edits": OF_MOST_KINDS}, checks.compared, ("letters",)),
    ("attention/attention", PAIR, drawn(attention_head="weights"), ("bert",)),
    *(
        (
            "experiments/circuits",
            {"circuit_view": view, **way, **dict(zip(BOTH, STEERED[name], strict=True))},
            check,
            (name,),
        )
        for view, check, ways, names in (
            ("Heads", checks.parts, ({}, {"attributed_by": "EAP"}), ("letters",)),
            ("Circuit", checks.circuit, ({"patched_edges": "7"},), ("letters",)),
            ("Steering", checks.steering, ({}, STEERED_BY_HEAD), ("letters", "bert")),
            ("Causal tracing", checks.traced, TRACED, ("reviews", "gpt2")),
            ("Head card", checks.card, ({}, {"layer": "1", "head": "1"}), DECODERS),
            ("Head card", checks.card, ({},), ("bert",)),
            ("Text as evidence", checks.evidence, ({}, {"excited_by": "Largest weight"}), READERS),
            ("Path patching", checks.paths, PATHS, DECODERS),  # others have no edges
        )
        for way, name in each_once(ways, names)
    ),
    ("experiments/compare", {"with": "Another head"}, checks.compared, FEW),
    ("experiments/compare", {"with": "Another sentence"}, checks.compared, FEW),
    ("experiments/compare", {**OTHER_MODEL, "other_model": "reviews"}, checks.pooled, ("letters",)),
    ("experiments/compare", {**OTHER_MODEL, "other_model": "letters"}, checks.pooled, ("reviews",)),
    ("experiments/compare", OF_AN_ENCODER, checks.pooled, ("translation",)),
    ("experiments/interventions", {"look": "Every head"}, checks.every_head, SOME),
    ("experiments/interventions", {"look": "Faithfulness"}, checks.faithful, FEW),
]
STATE = {"training/training": {"reverse_steps": 4, "reverse_batch_size": 2}}


@pytest.fixture
def folders(
    small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """Every model is offered: in which folder each lies."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    return {name: published if name in ("bert", "gpt2", "t5") else small_models for name in ALL}


@pytest.mark.parametrize("view", VIEWS, ids=[path.split("/")[1] for path, *_ in VIEWS])
def test_the_lines_of_a_view_make_its_numbers(
    view: View, folders: dict[str, Path], subtests: pytest.Subtests
) -> None:
    path, address, check, models = view
    for model in models:
        with subtests.test(model=model):
            check(panel(path, folders[model], STATE.get(path), model=model, **address))


def test_the_lines_of_two_schemes_open_the_learned_model(shipped_models: None) -> None:
    for first, second in [("Sinusoidal", "Learned"), ("Learned", "Sinusoidal")]:
        asked = {"model": "shakespeare", "scheme": first, "other_scheme": second}
        page = panel(SCHEME, SHIPPED, **asked)
        checks.scheme(page)
        assert page.made["positions"].table is not None


def test_lines_of_every_kind_of_stage(folders: dict[str, Path], subtests: pytest.Subtests) -> None:
    """Of each kind the last stage of the first model that has it."""
    configs = {entry.name: entry.config for entry in available_models.list_models()}
    seen = set[str]()
    for model in ALL:
        config = configs[model]
        assert config is not None
        last = {stage.kind: stage.name for stage in stages_of(config)}
        new, seen = {kind: last[kind] for kind in last if kind not in seen}, seen | set(last)
        for kind, name in new.items():
            with subtests.test(model=model, kind=kind):
                page = panel("forward_pass/forward_pass", folders[model], model=model, stage=name)
                values = as_array(page.made["values"])
                if kind == "tokens":
                    assert [f"{value:,.0f}" for value in values] == page.column("token ID")
                    continue
                rows, columns = page.header("stage_values")["places"]
                values = values.reshape(-1, values.shape[-1])
                few = values if len(values) == len(rows) else values[rows]
                page.shows("stage_values", few[:, columns])


def test_lines_of_too_many_shares(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.analysis.forward_pass.pass_values.MOST_LOGITS", 10)
    for address in [{"decoder_token": "1"}, {}]:
        asked = {"model": "letters", "stage": "probabilities", **address}
        page = panel("forward_pass/forward_pass", small_models, **asked)
        _, columns = page.header("stage_values")["places"]
        assert len(page.made["values"]) == 1
        page.shows("stage_values", page.made["values"][:, columns])


def test_lines_begin_with_the_token_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_forced_to_begin(tmp_path, "begins")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    page = panel("generation/generation", tmp_path, model="begins", way="Teacher forcing")
    assert page.made["forcing"].probabilities[0] == 1
    checks.forced(page)
    label = opened_model.open_model("begins").tokenizer.label
    assert page.board("forcing")[2] == [label(int(each)) for each in page.made["forcing"].predicted]


def test_the_filling_of_a_prompt_is_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folders"
    save_model(folder, "filled", None, "the cat dog", tie_embeddings=False)
    cat = word_tokenizer(WORDS, DECODER).encode("the cat dog")[-2].id
    config = folder / "filled" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_id": cat}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    opened = opened_model.open_model("filled")
    begun = [token.id for token in continuation.prompt_of(opened, "the cat dog").tokens]
    page = panel("generation/generation", folder, model="filled", branches=f"0d9.1f{cat}")
    path = page.made["path"][: page.made["step"]]
    ids = torch.tensor([[*begun, *path]])
    keep = ids != cat
    assert not keep[:, : len(begun)].all()
    keep[:, len(begun) :] = True
    logits = trace(opened.model, ids, keep=keep).output[0, -1]
    assert cat in path
    assert (page.made["logits"][0] - logits).abs().nan_to_num(posinf=0).max() < 1e-5
