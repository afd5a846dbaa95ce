"""Every view of every page shows the numbers of the model: read, and made again from the core."""

import math
from collections.abc import Callable
from functools import partial
from urllib.parse import quote_plus

import pytest

from explorer.runs.sweep import notes_of
from explorer.runs.worker import train_to_end
from explorer.tasks import TASKS
from tests.browser.truth import (
    changing,
    circuits,
    finding,
    flowing,
    generating,
    head_cards,
    history,
    inside,
    learning,
    living,
    looking,
    measured,
    mixing,
    patching,
    placing,
    racing,
    steering,
    views,
    weighing,
)
from tests.browser.truth.core import CHECKPOINTS, NEGATION, SHAKESPEARE, TRANSLATION, Case
from tests.browser.truth.screen import Claim, said
from tests.browser.truth.views import View
from tests.browser.visiting import Visitor
from tests.runs.making import tiny_run
from tests.served import Server


def train(visitor: Visitor) -> list[Claim]:
    """How much weight a head of cross-attention has where the word is read backwards."""
    visitor.drawn("watched")
    head, score = said(visitor, r"Layer 0, head (\d) · ([\d.]+) on the expected pattern")
    case = Case(CHECKPOINTS / "reverse", "reverse", "decoder", 0, "cross_attn", int(head))
    letters = len(case.text)
    backwards = case.weights[:letters, :letters].flip(-1).diagonal()
    return [Claim("score on the pattern", score, float(backwards.mean()))]


def data(visitor: Visitor) -> list[Claim]:
    """Tokens of the first batches, which are made again, without padding."""
    task = TASKS["reverse"]
    batches = [task.batch(step, task.training) for step in range(20)]
    true = sum(int((ids != 0).sum()) for batch in batches for ids in batch.inputs)
    share, tokens, examples = said(
        visitor, r"([\d.]+) % of ([\d,]+) tokens in the first 20 batches \(([\d,]+) examples\)"
    )
    (found,) = said(visitor, r"; ([\d,]+) of these occur in the first")
    return [
        Claim("unknown", share, 0.0),
        Claim("tokens", tokens, true),
        Claim("examples", examples, 20 * task.training.batch_size),
        Claim("held out and trained on", found, 0),
    ]


Truth = Callable[[Visitor], list[Claim]]
LEARNING = "learn_rules=50&learn_step=0"
POSITIONS, OWN_POSITIONS = "scheme=Sinusoidal", "times=2+×"
PAIR, HELD = "query={}+·+{}&key={}+·+{}", f"held=q{SHAKESPEARE.query}k{SHAKESPEARE.key}"
HUNT = f"{TRANSLATION.address}&order=0"
TRUTHS: dict[View, tuple[Truth, str]] = {
    ("overview", ""): (looking.start, ""),
    ("tokens", ""): (looking.tokens, ""),
    ("tokenizer_training", "Byte-level BPE"): (learning.byte_pairs, LEARNING),
    ("tokenizer_training", "WordPiece"): (learning.wordpiece, LEARNING),
    ("tokenizer_training", "Unigram"): (learning.unigram, LEARNING),
    ("embedding_space", ""): (partial(living.space, SHAKESPEARE), ""),
    ("positions", "Scheme"): (placing.scheme, POSITIONS),
    ("positions", "Permutation"): (placing.order, OWN_POSITIONS),
    ("positions", "Length extrapolation"): (placing.longer, OWN_POSITIONS),
    ("positions", "Doubled exponent"): (placing.exponents, POSITIONS),
    ("attention", "Matrix"): (partial(looking.attention, SHAKESPEARE), ""),
    ("attention", "Lines"): (looking.lines, ""),
    ("attention", "Tokens"): (looking.two_way, ""),
    ("heads", "Finder"): (mixing.finder, "metric=Previous-token+score"),
    ("heads", "Similarity"): (mixing.similarity, "metric=Previous-token+score"),
    ("heads", "Rollout"): (mixing.rollout, "metric=Previous-token+score"),
    ("heads", "Flow"): (mixing.flow, "metric=Previous-token+score"),
    ("head_steps", ""): (partial(looking.stages, SHAKESPEARE), HELD),
    ("query_key", ""): (partial(looking.pairs, SHAKESPEARE), PAIR.format(7, "␣be", 6, "␣to")),
    ("logit_lens", ""): (partial(looking.lens, SHAKESPEARE), ""),
    ("forward_pass", ""): (
        partial(looking.forward_pass, SHAKESPEARE),
        f"stage={SHAKESPEARE.site}.weights",
    ),
    ("generation", "Token by token"): (generating.token_by_token, generating.asks()),
    ("generation", "Beam search"): (generating.beams, generating.asks()),
    ("generation", "Teacher forcing"): (generating.forcing, generating.asks()),
    ("masks", "I am a student"): (looking.student, ""),
    ("masks", "Your sentence"): (looking.masks, ""),
    ("masks", "A padded batch"): (looking.padded, ""),
    ("interventions", "Every head"): (changing.every_head, ""),
    ("interventions", "Faithfulness"): (changing.faithfulness, ""),
    ("interventions", "Attention maps"): (changing.maps, ""),  # the last, since it changes the pass
    ("compare", "Another head"): (changing.another_head, changing.ASKS_SENTENCE),
    ("compare", "Another sentence"): (changing.another_sentence, changing.ASKS_SENTENCE),
    ("compare", "Another model"): (changing.another_model, changing.ASKS_MODEL),
    ("compare", "Your interventions"): (changing.edits, changing.ASKS_EDITS),
    ("circuits", "Heads"): (circuits.parts, circuits.ASKS_PARTS),
    ("circuits", "Circuit"): (circuits.circuit, circuits.ASKS_CIRCUIT),
    ("circuits", "Head card"): (head_cards.card, head_cards.ASKS_CARD),
    ("circuits", "Text as evidence"): (head_cards.evidence, head_cards.ASKS_EVIDENCE),
    ("circuits", "Steering"): (steering.steering, steering.ASKS),
    ("circuits", "Causal tracing"): (patching.tracing, patching.ASKS_TRACING),
    ("circuits", "Path patching"): (patching.paths, patching.ASKS_PATHS),
    ("museum", "Exhibits"): (finding.exhibits, ""),
    ("museum", "Systems"): (finding.systems, ""),
    **{
        ("museum", f"{views.FIND}: {name}"): (partial(finding.instrument, name), HUNT)
        for name in measured.INSTRUMENTS
    },
    ("training", "Run"): (train, ""),
    ("training", "Data"): (data, ""),
    ("checkpoints", "Parameters"): (weighing.parameter_tree, ""),
    ("checkpoints", "Weights"): (weighing.weights, ""),
    ("checkpoints", "Norms"): (weighing.norms, ""),
    ("checkpoints", "Singular values"): (weighing.singular_values, ""),
    ("checkpoints", "Heads"): (weighing.heads, ""),
    ("checkpoints", "Diagnostics"): (weighing.diagnostics, ""),
}
"""What each view claims, and what its address asks for. Views that ask for the same are read in
one load of their page, one after the other."""
OF_A_RUN = ("compare", "A training step")
CIRCUIT_OF_A_RUN = ("circuits", "Over training")
"""Offered only where a training lies beside the model, so it has a test of its own."""


def of_another_model(case: Case, *words: str) -> dict[str, tuple[Truth, str]]:
    """What pages claim of a model that reads a source or names a class."""
    pair = PAIR.format(case.query, words[0], case.key, words[1])
    return {
        "overview": (partial(flowing.picture, case), case.address),
        "attention": (partial(looking.attention, case), case.address),
        "query_key": (partial(looking.pairs, case), f"{case.address}&{pair}"),
        "head_steps": (
            partial(looking.stages, case),
            f"{case.address}&held=q{case.query}k{case.key}",
        ),
        "logit_lens": (partial(looking.lens, case), case.address),
        "forward_pass": (
            partial(looking.forward_pass, case),
            f"{case.address}&stage={case.site}.weights",
        ),
    }


OTHERS: dict[str, dict[str, tuple[Truth, str]]] = {
    "translation": {
        **of_another_model(TRANSLATION, "chat", "cat"),
        "generation": (looking.generation, TRANSLATION.address),
        "embedding_space": (
            partial(living.space, TRANSLATION),
            f"{TRANSLATION.address}&of_stack=Decoder",
        ),
    },
    "negation": of_another_model(NEGATION, "the", "film"),
}


def address(view: View, asks: str) -> str:
    page, said = "" if view[0] == "overview" else view[0], views.every().get(view, "")
    if "model=" not in asks:
        asks = f"{SHAKESPEARE.address}&{asks}"
    return f"/{page}?{asks}{said}"


def faults(claims: list[Claim]) -> list[str]:
    assert claims, "nothing is claimed"
    return [claim.fault() for claim in claims if claim.fault()]


@pytest.mark.parametrize("page", sorted({page for page, _ in TRUTHS}))
def test_every_number_is_the_model_s(visitor: Visitor, page: str) -> None:
    asked, wrong = None, {}
    for view, (truth, asks) in TRUTHS.items():
        if view[0] != page:
            continue
        if asks != asked:
            visitor.open(address(view, asks))
            visitor.has_everything()  # or a view moves while it is pointed at
        elif view[1] in views.CHOICES[page][1]:
            visitor.other_view(views.CHOICES[page][0], view[1])
        asked = asks
        wrong[view] = faults(truth(visitor))
    assert {view: said for view, said in wrong.items() if said} == {}


@pytest.mark.parametrize("model", OTHERS)
def test_every_number_of_cross_attention_and_of_a_classifier_is_the_model_s(
    visitor: Visitor, model: str
) -> None:
    wrong = {}
    for page, (truth, asks) in OTHERS[model].items():
        visitor.open(address((page, ""), asks))
        wrong[page] = faults(truth(visitor))
    assert {page: said for page, said in wrong.items() if said} == {}


def test_every_number_of_two_schemes_of_positions_is_the_model_s(visitor: Visitor) -> None:
    visitor.open(address(("positions", "Scheme"), "scheme=Sinusoidal&other_scheme=Learned"))
    assert faults(placing.two_schemes(visitor)) == []


def test_a_training_step_is_the_step_s(visitor: Visitor, server: Server) -> None:
    run = tiny_run(server.runs)
    train_to_end(run.folder)
    visitor.open(f"/compare?with={quote_plus(OF_A_RUN[1])}&{changing.asks_step(run)}")
    assert faults(changing.step(visitor, run)) == []


def test_a_circuit_over_training_is_the_one_of_each_snapshot(
    visitor: Visitor, server: Server
) -> None:
    run = tiny_run(server.runs, task="induction")
    train_to_end(run.folder)
    visitor.open(f"/circuits?{circuits.asks_run(run)}")
    assert faults(circuits.over_training(visitor, run)) == []


@pytest.mark.parametrize("view", racing.VIEWS)
def test_runs_side_by_side_are_those_of_their_folders(
    visitor: Visitor, server: Server, view: str
) -> None:
    notes, runs = notes_of("A race"), [tiny_run(server.runs, lr=lr) for lr in (1e-3, 1e-2)]
    for run in runs:
        run.note(notes)
        train_to_end(run.folder)
    asks = "".join(f"&runs={run.name}" for run in runs)
    visitor.open(f"/runs?runs_view={quote_plus(view)}&sweep={notes.sweep}{asks}")
    assert faults(racing.VIEWS[view](visitor, runs)) == []


@pytest.mark.parametrize("view", inside.VIEWS)
def test_the_inside_of_a_training_is_that_of_the_run(
    visitor: Visitor, server: Server, view: str
) -> None:
    run = tiny_run(server.runs)
    train_to_end(run.folder)
    truth, asks = inside.VIEWS[view]
    visitor.open(f"/inside_training?run={run.name}&inside_view={quote_plus(view)}&{asks}")
    assert faults(truth(visitor, run)) == []


@pytest.mark.parametrize("view", history.VIEWS)
def test_the_history_of_a_training_is_that_of_its_snapshots(
    visitor: Visitor, server: Server, view: str
) -> None:
    run = tiny_run(server.runs)
    train_to_end(run.folder)
    truth, asks = history.VIEWS[view]
    visitor.open(f"/training_history?model={run.name}&history_view={quote_plus(view)}&{asks}")
    assert faults(truth(visitor, run)) == []


def test_a_difference_over_groups_compares_what_both_models_have(visitor: Visitor) -> None:
    visitor.open(address(("compare", "Another model"), changing.ASKS_WORDS))
    assert faults(changing.over_groups(visitor)) == []


def test_no_view_is_left_out() -> None:
    """What the pages' own tables offer is read here."""
    assert set(views.every()) == {
        *TRUTHS,
        OF_A_RUN,
        CIRCUIT_OF_A_RUN,
        *(("inside_training", name) for name in inside.VIEWS),
        *(("runs", name) for name in racing.VIEWS),
        *(("training_history", name) for name in history.VIEWS),
    }
    assert set(views.CHOICES) <= set(views.pages())


PLANT = """([from, to]) => {
  let found = 0;
  const plant = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) plant(element.shadowRoot);
      for (const node of element.childNodes) {
        if (node.nodeType !== Node.TEXT_NODE || node.textContent.trim() !== from) continue;
        node.textContent = to;
        found += 1;
      }
    }
  };
  plant(document);
  return found;
}"""
PLANTED: list[View] = [
    ("query_key", ""),
    ("tokens", ""),
    ("generation", "Beam search"),
    ("heads", "Similarity"),
    ("checkpoints", "Singular values"),
]
"""One of each way of reading: a table, a table on a canvas, a tree, a strip, names and values."""


def cut_off(claim: Claim) -> str:
    """The number with its last digit cut off where it should be rounded, a whole one off by one."""
    if isinstance(claim.true, int):
        return str(claim.true + 1)
    decimals = len(claim.shown.partition(".")[2])
    size = math.floor(abs(claim.true) * 10**decimals) / 10**decimals
    return f"{'−' if claim.true < 0 else ''}{size:.{decimals}f}"


@pytest.mark.parametrize("view", PLANTED, ids=lambda view: view[0])
def test_a_planted_false_number_is_seen(visitor: Visitor, view: View) -> None:
    """One last digit cut off instead of rounded: no more is wrong with it.

    It is the first of those that are a text of their own, not part of a sentence.
    """
    truth, asks = TRUTHS[view]
    visitor.open(address(view, asks))
    claims = truth(visitor)
    assert faults(claims) == []
    planted = (
        wrong
        for claim in claims
        if (wrong := cut_off(claim)) != claim.shown
        and visitor.page.evaluate(PLANT, [claim.shown, wrong])
    )
    wrong = next(planted)
    assert any(wrong in fault for fault in faults(truth(visitor)))


def test_a_number_is_right_to_half_its_last_digit() -> None:
    cases = [
        ("0.319", 0.3186, 0.0, True),
        ("0.318", 0.3186, 0.0, False),
        ("0.318", 0.31852, 1e-4, True),
        ("0.318", 0.3186, 1e-4, False),
        ("0", 0.3, 0.0, False),
        ("1", 0.7, 0.0, False),
        ("0", 0.0, 0.0, True),
        ("124", 123.6, 0.0, True),
        ("123", 123.6, 0.0, False),
        ("7.90e−7", 7.904e-7, 0.0, True),
        ("7.90e−7", 7.96e-7, 0.0, False),
        ("1,024", 1024, 0.0, True),
        ("1,024", 1025, 0.0, False),
    ]
    for shown, true, step, right in cases:
        assert (Claim("a number", shown, true, step).fault() == "") is right, (shown, true)
