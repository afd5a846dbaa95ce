"""What an address asks for and does not exist is said in a sentence and replaced, on every page."""

from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup, Selectbox

from explorer.app.persistent_choices import as_text
from explorer.inference.continuation import MAX_GENERATED
from explorer.views.generation.generation_limits import USUAL_LENGTH
from tests.apps import page, said, views
from tests.views.drawing import press

pytestmark = pytest.mark.usefixtures("small_models")
HUGE = "9" * 5_000
LONG = "the+" * 525
LENGTH = f"“New tokens” goes from 1 to {MAX_GENERATED:,}, not “{{}}”; showing {USUAL_LENGTH}."
IN_VAIN: dict[str, list[str]] = {
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
    f"attention/attention?mass={HUGE}": ["“mass” can be 10 to 100 %"],
    **{
        f"attention/attention?held=q99k0&drawn=77&view={view}": [
            "not “q99k0”; k0 is pinned.",
            "“drawn” can be heads 0 to 3 with dots between them, not “77”",
        ]
        for view in ("Matrix", "Lines", "Tokens")
    },
    "attention/heads?code=x&export=x": [
        "“Code” has no “x” here; showing it closed.",
        "“Export” has no “x” here; showing it closed.",
    ],
    "attention/heads?version=x&sidebar=gone": [
        "“version” has no “x” here; showing it as version 2.",
        "“sidebar” has no “gone” here; showing it unfolded.",
    ],
    "attention/heads?version=99&view=x&later=y": [
        "This link was made by a newer version of the app: “view” and “later” are not understood "
        "here and left out."
    ],
    "attention/heads?version=99&side=Flow": [
        "This link was made by a newer version of the app, which says here the same."
    ],
    "attention/heads?hidden=everything": ["“hidden” names “everything”, and no control is called"],
    "attention/heads?side=Backside&metric=Wisdom&best=7&best_is=Odd": [
        "“View” has no “Backside” here; showing Finder.",
        "“Metric” has no “Wisdom” here; showing Previous-token score.",
        "“Heads shown” has no “7” here; showing 6.",
        "“Order” has no “Odd” here; showing Highest first.",
    ],
    "attention/heads?side=Similarity&arranged=x": [
        "“Order of the heads” has no “x” here; showing By layer."
    ],
    "attention/heads?side=Rollout&through=9": ["“Through layer” has no “9” here; showing 1."],
    "attention/heads?side=Flow&flow_to=9+dog": ["“Token” has no “9 dog” here; showing"],
    "attention/head_steps?up_to=nothing&held=q99k0": [
        "“Steps up to” has no “nothing” here; showing values.",
        "“held” can be a query and a key of this text",
    ],
    "generation/generation?temperature=9&top_k=-3&top_p=0&seed=x&branches=0d5.7f3": [
        "“Temperature” goes from 0 to 3, not “9”; showing 1.",
        "“Top-k” goes from 0 to 1,000, not “-3”; showing 0.",
        "“Top-p” goes from 0.01 to 1, not “0”; showing 1.",
        "“Seed” goes from 0 to 9,999, not “x”; showing 0.",
        "The branches in the address do not fit",
    ],
    "generation/generation?branches=0d9999": ["The branches in the address do not fit"],
    f"generation/generation?branches=0d5-5-5{'-5' * 80}": [
        "The branches in the address do not fit"
    ],
    "generation/generation?way=Beam+search&length=0": [LENGTH.format("0")],
    "generation/generation?length=999": [LENGTH.format("999")],
    "generation/generation?length=x": [LENGTH.format("x")],
    "input/positions?scheme=Banana&lab=x&place=999": [
        "has no “Banana” here; showing",
        "has no “x” here; showing",
        "“Position” goes from 0 to",
    ],
    "input/positions?other_scheme=Banana&similar_by=x": [
        "“Beside it” has no “Banana” here; showing",
        "“Similarity of two positions” has no “x” here; showing",
    ],
    f"input/positions?place={HUGE}": ["“Position” goes from 0 to"],
    "attention/query_key?query=1+·+nothing": ["“Query” has no “1 · nothing” here; showing"],
    "attention/query_key?query=-1": ["“Query” has no “-1” here; showing"],
    "forward_pass/forward_pass?stage=encoder.0.resid_mid": [
        "This model has no stage “encoder.0.resid_mid”; showing Tokens."
    ],
    "forward_pass/forward_pass?stage=decoder.1.self_attn.weights&key_token=x&decoder_token=3": [
        "There is no key “x” here; showing the one attended to most."
    ],
    "forward_pass/forward_pass?stage=decoder.embed&decoder_token=-1&number=99999": [
        "There is no token “-1” here",
        "There is no dimension 99,999 here, the last is 15: the first one drawn is pinned",
    ],
    f"forward_pass/forward_pass?stage=decoder.embed&decoder_token={HUGE}&number={HUGE}": [
        "There is no token",
        "There is no dimension",
    ],
    "input/tokens?beside=nothing&learn_rules=7&learn_from=nowhere": [
        "“Compare with” has no “nothing” here.",
        "at most 100 new tokens",
    ],
    "experiments/interventions?look=Nowhere&change=Weather&expected_at=99+·+dog&watched=dog+(7)": [
        "“View” has no “Nowhere” here; showing Attention maps.",
        "“Intervention” has no “Weather” here; showing Head.",
        "“Output position” has no “99 · dog” here",
        "“Tracked token” has no “dog (7)” here",
    ],
    "experiments/interventions?change=Mask&mask_how=Odd": [
        "“Masking” has no “Odd” here; showing Preset."
    ],
    "experiments/interventions?change=Token&token_at=-1&text=the+cat": [
        "There is no token “-1” in this text; showing 1.",
        "Token 1 is “",
    ],
    "experiments/compare?with=A+training+step": [
        "has no “A training step” here; showing Another head."
    ],
    f"experiments/compare?with=Another+sentence&other_text={LONG}": [
        "“Other sentence” in the address had 2,100 characters; the first 2,000 are kept."
    ],
    f"experiments/interventions?change=Patch&patch_text={LONG}": [
        "“Source sentence (same number of tokens)” in the address had 2,100 characters"
    ],
    "experiments/interventions?change=Steer&steer_strength=inf": [
        "“Strength” goes from -10 to 10, not “inf”; showing 1."
    ],
    "experiments/interventions?edits=1.1~s.d.0.a.nan.QQ.Qg": [
        "“s.d.0.a.nan.QQ.Qg” in the address is not an intervention and was dropped."
    ],
    f"generation/generation?model=translation&way=Teacher+forcing&target={LONG}": [
        "“Target” in the address had 2,100 characters; the first 400 are kept."
    ],
    "experiments/museum?mistake=x": ["“Make the mistake” has no “x” here; showing on."],
    "training/training?task=nonsense": ["“Task” has no “nonsense” here; showing reverse."],
    "experiments/museum?room=Find+the+mistake&order=10000&question=0": [
        "“Order seed” goes from 0 to 9,999, not “10000”; showing 0.",
        "not “0”; showing 1.",
    ],
    "models/checkpoints?show=Weights&tensor=../../etc/passwd&cell=Median": [
        "“Tensor” has no “../../etc/passwd” here; showing self_attn.q_proj.weight.",
        "`decoder.blocks.0.self_attn.q_proj.weight`",
        "Each cell is",
    ],
}

HELD_BY_THE_ADDRESS = [
    "attention/attention?view=Lines&text=the+hat&layer=1&head=1",
    "attention/attention?model=translation&part=Encoder",
    "attention/attention?model=bert&text=the+cat&pair=a+dog",
    "attention/heads?side=Finder&metric=Entropy&best_is=Lowest+first&best=12",
    "attention/heads?side=Similarity&arranged=By+similarity",
    "attention/heads?side=Rollout&through=0",
    "attention/heads?side=Flow&flow_to=1+·+the",
    "attention/head_steps?up_to=softmax",
    "generation/generation?temperature=0.5&top_k=4&top_p=0.7&seed=3&length=5",
    "generation/generation?way=Beam+search&beams=3&alpha=1.5",
    "generation/generation?way=Teacher+forcing&given=1",
    "generation/generation?length=7",
    "forward_pass/logit_lens?logit_of=byte+1/2+<0xD7>+(149)",
    "attention/masks?example=A+padded+batch",
    "attention/query_key?query=1+·+the&key=0+·+<s>&order=By+size+of+the+product&number=12",
    "input/positions?scheme=Rotary&dimensions=1&place=5",
    "input/positions?scheme=ALiBi&other_scheme=Rotary&similar_by=Dot+product",
    "input/positions?table_width=An+odd+width,+7",
    "input/positions?lab=Permutation&order_of=Swap+two+tokens&swap_one=0+·+<s>&swap_other=1+·+the",
    "input/positions?lab=Permutation&order_of=Custom+order&places=0+2+1",
    "input/positions?lab=Length+extrapolation&times=1.5+×",
    "input/positions?lab=Doubled+exponent&width=This+model's+width",
    "input/tokens?step=2&beside=translation",
    "input/tokenizer_training?learn_how=WordPiece&learn_from=The+README+of+this+app&learn_rules=50"
    "&learn_step=1&learn_encode=1",
    "input/tokenizer_training?learn_how=Unigram&learn_size=1",
    "experiments/interventions?becomes=Mean+over+positions&expected_at=1+·+the",
    "experiments/interventions?watched=byte+1/2+<0xD7>+(149)",
    "experiments/interventions?edits=1.1~h.d.0.1.z",
    "experiments/interventions?change=Mask&mask_preset=Blocks&mask_where=Every+layer",
    "experiments/interventions?change=Mask&mask_how=Cell+by+cell",
    "experiments/interventions?change=Edge&edge_query=1+·+the&edge_key=1+·+the"
    "&edge_in=Every+head+of+the+layer&edge_becomes=Mean+over+queries",
    "experiments/interventions?change=Token&new_token=a",
    "experiments/interventions?change=Patch&patch_text=the+hat&patch_what=Residual+stream+after+the+layer"
    "&patch_at=1+·+the",
    "experiments/interventions?change=Steer&steer_toward=the+hat&steer_away=the&steer_strength=-2.5",
    "experiments/interventions?change=Steer&steer_by=Head+output&steer_toward=the+hat",
    "experiments/interventions?look=Every+head&heads_are=Patched&heads_from=the+hat"
    "&number=Change+in+the+top+logit&click=Ablates+the+head",
    "experiments/interventions?look=Faithfulness&edges_of=The+whole+layer&draw_seed=4",
    "experiments/compare?with=Another+head&other_layer=1&other_head=0",
    "experiments/compare?with=Another+sentence&other_text=the+hat",
    "experiments/compare?with=Another+model&other_model=reverse",
    "experiments/museum?exhibit=7+·+No+padding+mask&mistake=false",
    "experiments/museum?room=Find+the+mistake&order=7&question=2&instrument=Attention+map",
    "experiments/museum?room=Systems&system=repository+README",
    "models/checkpoints?show=Parameters&ledger=paper",
    "models/checkpoints?show=Weights&tensor=mlp.down_proj.weight&cell=Largest+|w|",
    "models/checkpoints?show=Norms&tensors=Biases",
    "models/checkpoints?show=Singular+values&axis=Logarithmic",
    "models/checkpoints?show=Heads&statistic=Mean+distance",
    "training/training?task=sort",
    "training/training?task=subwords&start_from=letters",
]
"""But for the views themselves, no value is the one that is shown at first."""


def held_by_the_address(at: AppTest) -> dict[str, str]:
    """What the widgets and players show whose choices the address has, by their keys."""
    kinds = (at.selectbox, at.button_group, at.text_input, at.number_input, at.slider, at.toggle)
    found = {"model": at.query_params.get("model", "")}
    for widget in [*at.multiselect, *(each for kind in kinds for each in kind)]:
        key = widget.proto.query_param_key
        if key:
            named = isinstance(widget, Selectbox | ButtonGroup)
            shown = widget.format_func(widget.value) if named else as_text(widget.value)
            found[key] = ",".join(shown) if isinstance(shown, list) else shown
    players = [key.removesuffix("_steps") for key in views(at) if key and key.endswith("_steps")]
    return found | {key: str(at.session_state[key]) for key in players}


def test_a_link_repeats_every_choice(
    published: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """In a browser Streamlit writes what a bound widget shows under the name it is bound to."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    for address in HELD_BY_THE_ADDRESS:
        with subtests.test(address=address):
            path, _, asked = address.partition("?")
            wanted = dict(parse_qsl(asked))
            found = held_by_the_address(page(path, **{"model": "letters", **wanted}))
            assert {key: found.get(key) for key in wanted} == wanted


def test_what_an_address_asks_for_in_vain_is_said_and_replaced(subtests: pytest.Subtests) -> None:
    for address, sentences in IN_VAIN.items():
        with subtests.test(address=address[:80]):
            path, _, asked = address.partition("?")
            at = page(path, **{"model": "letters", **dict(parse_qsl(asked))})
            shown = said(at) + "\n".join(info.value for info in at.info)
            assert [sentence for sentence in sentences if sentence not in shown] == []


def test_a_second_sentence_that_is_too_long_is_cut_and_said() -> None:
    at = page("attention/attention", model="bert", text="the cat", pair="a " * 1_050)
    assert "The second sentence in the address had 2,100 characters" in said(at)


def test_what_was_asked_in_vain_is_said_until_something_else_is_chosen() -> None:
    at = page("experiments/interventions", model="letters", change="Token", token_at="99")
    assert "There is no token “99” in this text" in said(at.run())

    at = page("attention/heads", model="letters", metric="Wisdom")
    assert "has no “Wisdom” here" in said(at.run())
    at.selectbox(key="metric").set_value("Entropy").run()
    assert "Wisdom" not in said(at)

    at = page("attention/attention", model="letters", view="Lines", held="q99k0", drawn="77")
    at.text_input(key="text").set_value("the hat").run()
    assert "“held”" not in said(at)

    at = page("generation/generation", model="letters", length="x")
    at.slider(key="length").set_value(5).run()
    assert "New tokens” goes" not in said(at)

    at = press(page("generation/generation", model="letters", branches="nonsense"), "draw")
    assert "The branches in the address do not fit" not in said(at)


def test_a_dimension_of_the_forward_pass_is_said_to_be_missing_until_a_text_or_a_click_brings_one(
    subtests: pytest.Subtests,
) -> None:
    path, asked = "forward_pass/forward_pass", {"model": "letters", "decoder_token": "999"}
    vain = "There is no token “999” here"
    at = page(path, **asked, stage="decoder.embed", number="x")
    assert vain in said(at)
    assert "There is no dimension “x” here" in said(at)
    at.selectbox(key="stage_dimensions").select(1).run()
    assert vain in said(at)
    assert "There is no dimension" not in said(at)
    at.selectbox(key="stage_decoder_token").select(0).run()
    assert "There is no" not in said(at)
    for key, value in [("text", "aab"), ("model", "translation")]:
        with subtests.test(key=key):
            at = page(path, **asked, stage="decoder.0.mlp.out")
            assert vain in said(at)
            at.session_state[key] = value
            at.run()
            assert not at.exception
            assert "999" not in said(at)
