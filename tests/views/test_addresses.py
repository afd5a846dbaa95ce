"""A link repeats every choice; what was asked for in vain is said until another is chosen."""

from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup, Selectbox

from explorer.app.persistent_choices import as_text
from tests import apps
from tests.apps import page, said, views
from tests.views.drawing import press

pytestmark = pytest.mark.usefixtures("small_models")
HELD_BY_THE_ADDRESS = [
    "attention/attention?view=Lines&text=the+hat&layer=1&head=1",
    "attention/attention?model=translation&part=Encoder",
    "attention/attention?model=bert&text=the+cat&pair=a+dog",
    "attention/heads?side=Finder&metric=Entropy&best_is=Lowest+first&best=12",
    "attention/heads?side=Similarity&arranged=By+similarity",
    "attention/heads?side=Rollout&through=0",
    "attention/heads?side=Flow&flow_to=1+·+the",
    "attention/heads?side=Sinks&first_token=a",
    "attention/head_steps?up_to=softmax",
    "generation/generation?temperature=0.5&top_k=4&top_p=0.7&seed=3&length=7",
    "generation/generation?way=Beam+search&beams=3&alpha=1.5",
    "generation/generation?way=Teacher+forcing&given=1",
    "forward_pass/logit_lens?logit_of=<0xD7>+byte+1/2+(149)",
    "attention/masks?example=A+padded+batch",
    "attention/query_key?pair_view=Products&query=1+·+the&key=0+·+<s>&order=By+size+of+the+product",
    "attention/query_key?pair_view=Value&number=12",
    "attention/query_key?pair_view=Why&against=0+·+<s>",
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
    "experiments/interventions?change=Token&new_token=a&watched=<0xD7>+byte+1/2+(149)",
    "experiments/interventions?change=Mask&mask_preset=Blocks&mask_where=Every+layer&look=Every+head"
    "&heads_are=Patched&heads_from=the+hat&number=Change+in+the+top+logit&click=Ablates+the+head",
    "experiments/interventions?change=Mask&mask_how=Cell+by+cell&look=Faithfulness"
    "&edges_of=The+whole+layer&draw_seed=4",
    "experiments/interventions?change=Edge&edge_query=1+·+the&edge_key=1+·+the"
    "&edge_in=Every+head+of+the+layer&edge_becomes=Mean+over+queries",
    "experiments/interventions?change=Patch&patch_text=the+hat&patch_what=Residual+stream+after+the+layer"
    "&patch_at=1+·+the",
    "experiments/interventions?change=Steer&steer_toward=the+hat&steer_away=the&steer_strength=-2.5",
    "experiments/interventions?change=Steer&steer_by=Head+output&steer_toward=the+hat",
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
    "training/training?sentence=olleh",
    "training/training?task=pairs&tokens=Its+own+subwords+(byte-level+BPE)",
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


def test_a_link_repeats_every_choice(published_models: None, subtests: pytest.Subtests) -> None:
    """In a browser Streamlit writes what a bound widget shows under the name it is bound to."""
    for address in HELD_BY_THE_ADDRESS:
        with subtests.test(address=address):
            path, _, asked = address.partition("?")
            wanted = dict(parse_qsl(asked))
            found = held_by_the_address(page(path, **{"model": "letters", **wanted}))
            assert {key: found.get(key) for key in wanted} == wanted


def test_what_was_asked_in_vain_is_said_until_something_else_is_chosen() -> None:
    at = page("attention/attention", model="letters", view="Lines", pinned="q99k0", drawn="77")
    assert "“pinned”" in said(at)
    at.text_input(key="text").set_value("the hat").run()
    assert "“pinned”" not in said(at)

    at = page("generation/generation", model="letters", branches="nonsense", length="x")
    assert "“New tokens” goes" in said(at)
    assert "The branches in the address do not fit" in said(at)
    apps.run(at.slider(key="length").set_value(5))
    assert "“New tokens” goes" not in said(at)
    assert "The branches in the address do not fit" not in said(press(at, "draw"))


def test_a_dimension_is_missing_until_one_is_there() -> None:
    path, asked = "forward_pass/forward_pass", {"model": "letters", "decoder_token": "999"}
    at = page(path, **asked, stage="decoder.embed", number="x")
    assert "There is no token “999” here" in said(at)
    assert "There is no dimension “x” here" in said(at)
    at.selectbox(key="stage_dimensions").select(1).run()
    assert "There is no token “999” here" in said(at)
    assert "There is no dimension" not in said(at)
    at.selectbox(key="stage_decoder_token").select(0).run()
    assert "There is no" not in said(at)
    at = page(path, **asked, stage="decoder.0.mlp.out")
    apps.run(at.text_input(key="text").set_value("aab"))
    assert "999" not in said(at)
