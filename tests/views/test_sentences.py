"""What a page says of its address: refusals, invalid values, captions. One row: address, sentences.

A page is opened once for each row. What needs a click, a file or a trained run is in other files.
"""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog.opened_model import open_model
from explorer.catalog.shipped import SHIPPED
from explorer.inference.generation_limits import MAX_GENERATED
from explorer.inference.results_cache import forget
from explorer.interventions.address_text import MAX_PATCH_TEXT
from explorer.text.visible_text import JOINER
from explorer.views.circuits import patching_view
from tests.apps import page as shown_page
from tests.apps import run, said
from tests.tiny import save_model
from tests.views.drawing import long_model, titles

pytestmark = pytest.mark.usefixtures("small_models")
Rows = dict[str, list[str]]
HUGE = "9" * 5_000
LONG = "the+" * 525
SMILES = "\N{GRINNING FACE}" * MAX_PATCH_TEXT
LENGTH = f"“New tokens” goes from 1 to {MAX_GENERATED:,}, not “{{}}”; showing 12."
NOTHING = "There is nothing to read yet: type a sentence."
UNTRAINED = "These positions are trained parameters, and this model has none"
NO_RUN = "There is no run called"

IN_VAIN: Rows = {
    f"attention/attention?model=bert&text=the+cat&pair={'a+' * 1_050}": ["had 2,100 characters"],
    "attention/attention?heads=x&weighting=x&colours=x&mass=x&hide=x&words=x&log=x&sentences=A→B": [
        "“heads” can be This head, Mean, Max, Mean of all layers or Max of all layers, "
        "not “x”; showing This head.",
        "“weighting” can be None or Value norm, not “x”; showing None.",
        "“colours” can be 1, Matrix, Row or Column, not “x”; showing 1.",
        "“mass” can be 10 to 100 %, not “x”; all keys are shown.",
        "This text has no key “x” to hide.",
        "“words” can be true or false, not “x”; it is off.",
        "“log” can be true or false, not “x”; it is off.",
        "There is no second sentence",
    ],
    **{
        f"attention/attention?pinned=q99k0&drawn=77&view={view}": [
            "not “q99k0”; k0 is pinned.",
            "“drawn” can be heads 0 to 3 with dots between them, not “77”",
        ]
        for view in ("Matrix", "Lines", "Tokens")
    },
    "attention/heads?code=x&export=x&version=x&sidebar=gone&side=Flow&flow_to=9+dog": [
        "“Code” has no “x” here; showing it closed.",
        "“Export” has no “x” here; showing it closed.",
        "“version” has no “x” here; showing it as version 3.",
        "“sidebar” has no “gone” here; showing it unfolded.",
        "“Token” has no “9 dog” here; showing",
    ],
    "attention/heads?version=99&view=x&later=y": ["“view” and “later” are unknown here"],
    "attention/heads?version=99&side=Flow": ["newer version of the app. Here it means the same."],
    "generation/generation?top_p=0&branches=0d5.7f3": [
        "“Top-p” goes from 0.01 to 1, not “0”; showing 1.",
        "The branches in the address do not fit",
    ],
    "generation/generation?way=Beam+search&length=0": [LENGTH.format("0")],
    "forward_pass/forward_pass?stage=encoder.0.resid_mid": ["mid”; showing Attention weights."],
    "forward_pass/forward_pass?stage=decoder.1.self_attn.weights&key_token=x&decoder_token=3": [
        "There is no key “x” here; showing the one attended to most."
    ],
    f"forward_pass/forward_pass?stage=decoder.embed&decoder_token={HUGE}&number=99999": [
        "There is no token “999",
        "There is no dimension 99,999 here, the last is 15: the first one drawn is pinned",
    ],
    "input/tokens?beside=nothing&learn_rules=7&learn_from=nowhere": [
        "“Compare with” has no “nothing” here.",
        "at most 100 new tokens",
    ],
    "experiments/interventions?expected_at=99+·+dog&watched=dog+(7)&change=Steer"
    "&steer_strength=inf&edits=1.1~h.d.0.1.z~s.d.0.a.nan.QQ.Qg": [
        "“Output position” has no “99 · dog” here",
        "“Tracked token” has no “dog (7)” here",
        "not “inf”; showing 1.",
        "is not an intervention",
    ],
    "experiments/interventions?change=Token&token_at=-1&text=the+cat": [
        "There is no token “-1” in this text; showing 1.",
        "Token 1 is “",
    ],
    f"experiments/compare?with=Another+sentence&other_text={LONG}": ["the first 2,000 are"],
    f"experiments/interventions?change=Patch&patch_text={LONG}": ["had 2,100 characters"],
    f"generation/generation?model=translation&way=Teacher+forcing&target={LONG}": [
        "“Target” in the address had 2,100 characters; the first 400 are kept."
    ],
    "training/training?task=nonsense": ["“Task” has no “nonsense” here; showing reverse."],
    "experiments/museum?room=Find+the+mistake&order=10000&question=0": [
        "“Order seed” goes from 0 to 9,999, not “10000”; showing 284.",
        "not “0”; showing 1.",
    ],
    "models/checkpoints?show=Weights&tensor=../../etc/passwd&cell=Median&layer=0": [
        "“Tensor” has no “../../etc/passwd” here; showing self_attn.q_proj.weight.",
        "`decoder.blocks.0.self_attn.q_proj.weight`",
        "Each cell is",
    ],
}
"""What is asked for and does not exist is said and replaced; `letters` where no model is named."""

CAPTIONS: Rows = {
    "attention/attention?model=translation&view=Lines&heads=Max&weighting=Value+norm&mass=60"
    "&words=true&hide_special=true": ["Kobayashi et al. 2020"],
    "attention/heads?text=one+black+dog": ["Mean over 13 of 14 rows."],
    "attention/heads?metric=Entropy&best_is=Lowest+first&best=12&layer=1&head=2": ["lowest first"],
    "attention/masks?model=translation&part=Encoder&example=A+padded+batch": ["No causal mask: "],
    "experiments/circuits?model=translation": ["This page needs a model with one stack"],
    "experiments/circuits?circuit_view=Over+training": ["This model has no snapshots of its"],
    "experiments/circuits?model=reviews&text=the+cat&corrupted=the+dog&circuit_view=Steering": [
        "This model does not generate text"
    ],
    "experiments/compare?with=Your+interventions&layer=1&edits=1.1~h.d.0.1.z": ["1: zero ablation"],
    "experiments/compare?with=Your+interventions&model=translation&edits=1.1~h.c.0.1.z": [
        "Generated after:"
    ],
    "experiments/compare?with=Another+model&model=translation&part=Cross&other_model=letters"
    "&text=the+cat": ["Encoder self-attention is shown: other models have only this attention on"],
    "experiments/compare?with=Another+sentence&text=the+cat&other_text=the+cat+and+the+hat": [
        "of different texts, so their cells do not belong together"
    ],
    "experiments/compare?with=Another+model&other_model=translation&text=the+cat": [
        "showing its encoder self-attention"
    ],
    "experiments/compare?with=Another+model&other_model=reverse&text=the+cat": [
        "Reverse does not know “t”, “h”, “e”, “␣”, “c” and 1 more and reads <unk> instead. "
        "To compare the whole text, choose Translation."
    ],
    "experiments/compare?with=Another+model&text=Zü": ["No other model reads the whole text:"],
    "experiments/interventions?text=the+cat&layer=0&head=1&pinned=q2k1": ["Pinned: “"],
    "experiments/interventions?text=the+cat&layer=0&head=1&pinned=q2k1&change=Token": [
        "Token 2 is “"
    ],
    "experiments/interventions?model=translation&part=Cross&pinned=q0k3&change=Token": [
        "Token 3 is “"
    ],
    "experiments/interventions?text=the+cat&edits=1.1~k.d.a.3": ["There is no key 3 here"],
    "experiments/interventions?layer=1&head=2&edits=1.1~h.d.0.1.z": ["After − before"],
    "experiments/interventions?text=the+cat&layer=0&head=1": [
        "Pin a cell: its edge",
        "Nothing is changed yet",
    ],
    "experiments/interventions?text=the+cat&layer=0&head=1&edits=1.1~h.d.0.1.z": [
        "weights of this head are unchanged.",
        "An ablated output",
    ],
    "experiments/interventions?change=Steer&text=the+cat&steer_toward=cat&steer_away=cat": [
        "The direction between these texts has no length"
    ],
    f"experiments/interventions?model=reviews&text=cat&change=Patch&patch_text={SMILES}": [
        "takes 1,610 characters in the address, which has room for about 1,500"
    ],
    "experiments/museum?model=reviews&exhibit=3+·+The+target+is+lost": [
        "Reviews cannot have this mistake: it has no decoder beside an encoder.",
        "So it is made in Translation",
    ],
    "experiments/museum?model=translation&exhibit=13+·+Post-norm+in+words,+pre-norm+in+code": [
        "the repository's model.py, read at its commit 7620f86, normalizes the input",
        "Nor does that file parse",
    ],
    "experiments/museum?model=translation&part=Encoder&exhibit=3+·+The+target+is+lost": [
        "the map is the same in both models, so it does not show the mistake."
    ],
    "forward_pass/forward_pass?model=translation&stage=encoder.0.self_attn.q&text=a+cat": [
        "Shape: batch 1 × tokens 3 × heads·d_head 16 → batch 1 × tokens 3 × heads 2 × d_head 8 → "
        "batch 1 × heads 2 × tokens 3 × d_head 8."
    ],
    "generation/generation?top_p=1.0": ["269 tokens can be sampled."],
    "generation/generation?top_k=4&top_p=0.6": ["top-k cuts", "top-p cuts"],
    **{
        f"generation/generation?way={way}&text={text}": [sentence]
        for way in ("Token+by+token", "Beam+search", "Teacher+forcing")
        for text, sentence in (("word+" * 300, "shorten it"), ("+", NOTHING))
    },
    "generation/generation?model=translation&way=Teacher+forcing&target=le+ours": ["<unk>: “ours”"],
    f"generation/generation?model=translation&way=Teacher+forcing&target={'le+' * 90}": [
        "shorten it"
    ],
    "generation/generation?model=translation&way=Teacher+forcing&text=cat+the": [
        "this is the model's own output; you can type another",
        "Free running: the output is the target.",
    ],
    "input/embedding_space?near_text=zq": ["“zq” is 3 tokens here: “␣”, “z”, “q”.", "Type one."],
    "input/embedding_space?model=translation&near_text=dog": ["“dog” in the token embedding"],
    "input/embedding_space?model=translation&near_text=zebra": ["“zebra” is not in this model's"],
    "input/positions?scheme=Learned&lab=Permutation": [UNTRAINED],
    "input/positions?scheme=Relative&lab=Length+extrapolation": [UNTRAINED],
    "input/positions?scheme=Learned": ["no such trained positions"],
    "input/positions?scheme=Relative": ["This model has no trained biases for distances"],
    "input/positions?scheme=ALiBi&head=1": ["the biases of head 1, chosen above"],
    "input/positions?other_scheme=Sinusoidal": ["“Beside it” has no “Sinusoidal” here; showing"],
    **{
        f"input/positions?model=translation&lab=Length+extrapolation&head=0&part={part}": [
            f"{name}, chosen above, reads the generated text.",
            "Encoder self-attention · Layer 0, head 0: how many tokens each query reads",
        ]
        for part, name in (("Decoder", "Decoder self-attention"), ("Cross", "Cross-attention"))
    },
    "input/positions?text=+&lab=Permutation": ["type a sentence"],
    "input/positions?table_width=An+odd+width,+7": ["7 dimensions are 3 pairs and a last sine"],
    "input/positions?model=translation&open=position_surface": ["The first 48 positions are shown"],
    "attention/heads?model=translation&part=Encoder&side=Flow&open=flow_sankey": ["strongest"],
    **{
        f"input/{way}&learn_from=Your+own+text&learn_own={'ab+' * 1_000}": [
            "3,000 characters; 2,000 fit into the address"
        ]
        for way in ("tokenizer_training?learn_how=Unigram", "tokens?beside=Trained+here:+WordPiece")
    },
    "models/checkpoints?model=translation&show=Singular+values&part=Cross": [
        "`decoder.blocks.0.cross_attn.q_proj.weight`",
        "Exact: a singular value decomposition",
    ],
    "models/checkpoints?model=translation&show=Parameters&ledger=paper": [
        "are counted in one box",
        "the parts below add up to one layer",
        "It cannot be exported: no published model family has this architecture.",
    ],
    "models/checkpoints?show=Weights&head=2": ["Each cell is one weight. Rows 8–11 are head 2."],
    "models/checkpoints?show=Weights&tensor=decoder.embedding.weight&cell=Largest+|w|": [
        "Each cell is the largest |w| of 3 × 1 weights"
    ],
    **{
        f"models/checkpoints?model=translation&show=Norms&tensors={kind}": [
            f"**{kind}: root mean square**"
        ]
        for kind in ("Matrices", "Norm gains", "Biases")
    },
    "models/checkpoints?model=reverse&show=Heads&text=+": [NOTHING],
    "models/checkpoints?model=reverse&show=Diagnostics&text=+": [NOTHING, "**Looks untrained**"],
    **{f"training/training?run={run}": [NO_RUN] for run in ("../../etc", "<script>", "x" * 3_000)},
    "training/training?task=reverse&start_from=letters": ["has a vocabulary of its own, which"],
    "training/training?training_view=Data&task=negation": ["868 of them are measured; 0 of these"],
    "training/training?training_view=Data&task=reviews": ["500 of them are measured"],
    "training/inside_training": ["Choose a run above"],
    "training/runs": ["No run yet: start one"],
    "training/runs?runs=absent": [NO_RUN],
    "training/runs?runs_view=Races+and+sweeps": ["No race yet: start one"],
}

PUBLISHED: Rows = {
    "input/embedding_space?model=gpt2": ["(tied)"],
    "attention/attention?model=bert&text=the+[MASK]+is+[MASK]": ["There are 2 masks"],
    "attention/attention?model=bert&text=the+[MASK]+is+good": ["Probabilities for the mask"],
    "attention/attention?model=gpt2&text=hello": ["so type token IDs such as 5 17 3."],
    "attention/attention?model=gpt2&text=1+2+50": ["Token 50 does not exist"],
    "experiments/circuits?model=bert&text=the+cat+[MASK]&corrupted=the+dog+[MASK]"
    "&circuit_view=Path+patching": ["there are no edges"],
    "experiments/compare?with=Another+model&model=bert&other_model=reviews&text=the+cat": [
        "no such token: “[SEP]” of the first map; their weight is in no cell"
    ],
    **{
        f"experiments/compare?with=Another+model&model=bert&other_model={other}&{texts}": [
            " reads one sentence: the second one is left out there."
        ]
        for other, texts in (("reviews", "text=the+cat&pair=a+dog"), ("gpt2", "text=1+2&pair=2+3"))
    },
}
INDUCTION = "experiments/circuits?model=induction&text=abcdeabcdeab&corrupted=adcbeadcbeab"
PATCHED = INDUCTION.replace("adcbeadcbeab", "abcdeadceeab")
SHIPPED_ONES: Rows = {
    "experiments/circuits?model=induction&answer_token=cd": ["“c”, “d”: give one token."],
    f"{PATCHED}&circuit_view=Causal+tracing&patched_value=Attention+output&patch_way=Noising"
    "&patch_number=Metric": ["The model reads the clean text", "is lost"],
    f"{PATCHED}&circuit_view=Causal+tracing&pair_source=Induction&pair_count=3": [
        "different lengths"
    ],
    f"{INDUCTION}&circuit_view=Path+patching&layer=1&head=1&path_end=Into+this+head"
    "&path_reads=Keys": ["embedding → 1.1"],
}
ODD: Rows = {
    "attention/heads?model=lone&side=Similarity": ["has a single head"],
    "attention/heads?model=lone&side=Finder": ["Rank 1 of 1 by previous-token score"],
    "attention/masks?model=far&example=Your+sentence": ["The scores include the bias that"],
    "attention/head_steps?model=long&text=abcabcabcabcabcabcabcabcabcabcabcabcabc&queries=9999"
    "&keys=many": [
        "“Queries: 32 from position” goes from 0 to ",
        "not “9999”; showing ",
        "not “many”; showing ",
    ],
    "experiments/museum?model=sandwich&exhibit=3+·+The+target+is+lost": ["own numbers are below"],
    "forward_pass/forward_pass?model=bare&stage=decoder.final": ["The pass ends here. This model"],
    "input/positions?model=learned&lab=Length+extrapolation": ["position 24 has no vector"],
    "input/positions?model=long&text=abc&lab=Length+extrapolation": ["of more than 2,048 are"],
    "models/checkpoints?model=grouped&show=Weights&head=3&tensor=self_attn.k_proj.weight": [
        "are key-value head 1."
    ],
    "overview/overview?model=bare": ["its output is one vector for each token"],
}
FOLDERS = {
    "in vain": IN_VAIN,
    "captions": CAPTIONS,
    "published": PUBLISHED,
    "shipped": SHIPPED_ONES,
    "odd": ODD,
}
LOWERED: list[tuple[dict[str, int], str, list[str]]] = [
    (
        {"analysis.rollout.STEPS_SOLVED": 1, "views.attention.rollout_and_flow.MOST_CELLS": 5},
        "attention/heads?side=Flow&through=1&text=the+hat",
        ["Up to "],
    ),
    (
        {
            "analysis.head_similarity.CELLS_COMPARED": 400,
            "analysis.head_similarity.HEADS_COMPARED": 4,
        },
        "attention/heads?side=Similarity&text=the+cat+and+the+hat+and+the+cat",
        ["evenly spaced", "Of 8 heads those of layer 1 are drawn: with all of them"],
    ),
    (
        {
            "analysis.embedding_space.MOST_SAMPLED": 20,
            "views.input.token_vectors.MOST_MOVING_TOKENS": 4,
            "analysis.embedding_space.WORK": 100 * 16**2,
        },
        "input/embedding_space?text=the+hat+and+the+cat",
        [
            "Grey is the vocabulary: 20 of 269 tokens, sampled with seed 0.",
            "The components are computed from 100 of 269 vectors.",
            "The last 4 of your 6 tokens are drawn.",
        ],
    ),
    (
        {"views.input.token_vectors.MOST_MOVING_TOKENS": 4},
        "input/embedding_space?model=reviews&text=the+cat+does+not+sleeps",
        ["The first 4 of your 6 tokens are drawn."],
    ),
    (
        {"analysis.map_faithfulness.MOST": 1},
        "experiments/interventions?text=the+cat&look=Faithfulness",
        ["too long: shorten the text"],
    ),
    *(
        (
            {"views.shared.measurement.MOST": 1},
            f"experiments/circuits?text=the+cat&corrupted=the+hat&circuit_view={view}",
            [sentence],
        )
        for view, sentence in (
            ("Causal+tracing", patching_view.TOO_LONG_FOR_TRACING),
            ("Path+patching", patching_view.TOO_LONG_FOR_PATHS),
        )
    ),
]
"""What is too much, where the bounds are lower than they are."""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that are each odd in one way."""
    folder = tmp_path_factory.mktemp("odd")
    save_model(folder, "lone", n_heads=1)
    save_model(folder, "far", positions="alibi")
    save_model(folder, "sandwich", norm_position="sandwich")
    save_model(folder, "bare", head="none")
    save_model(folder, "learned", positions="learned")
    save_model(folder, "grouped", n_heads=4, n_kv_heads=2)
    long_model(folder, "long")
    return folder


def opened(address: str) -> AppTest:
    """The page at this address; `open` names an expander that is open."""
    path, _, asked = address.partition("?")
    query: dict[str, Any] = {"model": "letters"}
    for name, values in parse_qs(asked, keep_blank_values=True).items():
        query[name] = values[0] if len(values) == 1 else values
    key = query.pop("open", "")
    at = shown_page(path, **query)
    if key:
        at.session_state[key] = True
        run(at)
    return at


def missing(address: str, sentences: list[str]) -> list[str]:
    """Those that do not stand on the page; literal Markdown is read as the reader sees it."""
    at = opened(address)
    words = "\n".join([said(at), *(info.value for info in at.info), *titles(at)])
    words = words.replace(JOINER, "").replace("\\", "")
    return [each for each in sentences if each.replace("\\", "") not in words]


@pytest.mark.parametrize("key", FOLDERS)
def test_an_address_is_answered_in_these_sentences(
    key: str, published: Path, odd: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    if key == "published":
        monkeypatch.setenv("EXPLORER_MODELS", str(published))
    elif key in (places := {"shipped": SHIPPED, "odd": odd}):
        monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(places[key]))
    for address, sentences in FOLDERS[key].items():
        with subtests.test(address=address[:120]):
            assert missing(address, sentences) == []


@pytest.mark.parametrize(("lowered", "address", "sentences"), LOWERED)
def test_what_is_too_much_is_answered_in_these_sentences(
    lowered: dict[str, int], address: str, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(open_model("letters"))
    for name, most in lowered.items():
        monkeypatch.setattr(f"explorer.{name}", most)
    assert missing(address, sentences) == []
