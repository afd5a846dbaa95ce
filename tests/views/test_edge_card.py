"""What opens of an edge: what it carries, what the weights say, and the card of a head of it."""

from streamlit.testing.v1 import AppTest

from explorer.analysis.head_composition import composition, unrelated
from explorer.catalog import opened_model
from explorer.circuits.graph import Edge, Node
from explorer.circuits.outcome import LOGIT_DIFFERENCE
from explorer.text.number_format import three
from explorer.views.circuits.edge_card import NO_HEAD, carried, composed

SOURCE, TARGET = Node("head", 0, 1), Node("head", 1, 0)


def drawn(source: tuple[str, int, int], target: tuple[str, int, int], reads: str) -> AppTest:
    """The card of an edge between two nodes of the induction model."""

    def page(source, target, reads):  # type: ignore[no-untyped-def]
        import streamlit as st

        from explorer.app.context import make_context
        from explorer.app.shelves import openable
        from explorer.circuits.graph import Edge, Node
        from explorer.circuits.outcome import LOGIT_DIFFERENCE
        from explorer.circuits.text_pairs import TextPair, question_of
        from explorer.views.circuits.edge_card import draw_edge_card

        st.session_state["model"] = "induction"
        context = make_context(openable(), ("decoder.self_attn", 0, 0))
        pair = TextPair("abcdeabcdeab", "adcbeadcbeab", "c", "e")
        question = question_of(context.opened, [pair], LOGIT_DIFFERENCE)
        nodes = Node(*source), Node(*target)
        draw_edge_card(context, question, Edge(*nodes, reads, 1.25, None, 1.5))

    at = AppTest.from_function(page, args=(source, target, reads), default_timeout=60).run()
    assert not at.exception
    return at


def words(at: AppTest) -> str:
    return "\n".join(each.value for each in [*at.markdown, *at.caption])


def test_an_edge_between_heads_says_what_it_carries_and_what_their_weights_say() -> None:
    opened = opened_model.open_model("induction")
    edge = Edge(SOURCE, TARGET, "k", 1.25, 0.5, 1.5)
    assert carried(edge, LOGIT_DIFFERENCE) == (
        "It carries 1.25 ± 0.500 logits of the metric by estimate, 1.50 logits by patching."
    )
    scores = composition(opened.model, 1, 0)[1, 0] / unrelated(opened.config.d_model)
    (said,) = composed(opened, edge)
    assert f"K-composition of 1.0 with 0.1 is {three(float(scores[1]))} ×" in said
    assert f"rank {1 + int(scores[0] > scores[1])} of 2 earlier heads" in said


def test_its_card_is_that_of_the_head_that_reads_or_of_the_one_that_writes() -> None:
    at = drawn(("head", 0, 1), ("head", 1, 0), "k")
    assert "Layer 1, head 0" in words(at)
    at.segmented_control(key="card_of").set_value("0.1").run()
    assert not at.exception
    assert "Layer 0, head 1" in words(at)
    assert "Layer 0, head 1" in words(drawn(("head", 0, 1), ("logits", 0, 0), ""))


def test_of_an_edge_without_a_head_that_is_said() -> None:
    assert NO_HEAD in words(drawn(("embedding", 0, 0), ("feed-forward", 1, 0), ""))
