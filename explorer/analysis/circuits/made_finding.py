"""What was measured of a question, as a finding."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from explorer.analysis.circuit_curves import CircuitPoint
from explorer.analysis.circuits.finding import (
    FORMAT,
    MOST_EDGES_KEPT,
    VERSION,
    Finding,
    Found,
    FoundHead,
    FoundLayer,
    FoundPair,
    MeanAndSpread,
    digest_of,
    shape_of,
)
from explorer.analysis.circuits.measure import METHODS, EdgeScores, correlation
from explorer.analysis.circuits.outcome import ANSWERS_READ
from explorer.analysis.circuits.text_pairs import Question, TokenPair
from explorer.analysis.circuits.typed_answers import pieces_of
from explorer.analysis.wiring import Place
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import Opened
from explorer.inference.answers import option_name
from explorer.text.labels import NEWLINE, SPACE


@dataclass(frozen=True)
class Measured:
    """What was measured of a question by now.

    `exact` has the value of each writer by its column, None where it was not patched;
    `exact_edges` those of the strongest edges in their order, as far as they were patched.
    `points` are circuits of every size and `smallest` the edges that restore 90 %.
    """

    method: str
    scores: EdgeScores
    exact: Sequence[float | None]
    exact_edges: Sequence[float] = ()
    points: Sequence[CircuitPoint] = ()
    smallest: int | None = None


def finding_of(opened: Opened, question: Question, measured: Measured) -> Finding:
    """The finding. Nothing is measured here but the digest of the weights."""
    scores, exact = measured.scores, measured.exact
    found = {
        place: Found(
            float(scores.writers[at]),
            None if scores.writers_spread is None else float(scores.writers_spread[at]),
            exact[at],
        )
        for at, place in enumerate(scores.wiring.columns)
    }
    heads = tuple(
        FoundHead(**vars(each), layer=place.layer, head=place.head)
        for place, each in found.items()
        if place.kind == "head"
    )
    known = [(each.estimate, each.exact) for each in heads if each.exact is not None]
    patched = dict(enumerate(measured.exact_edges))
    strongest = scores.strongest(MOST_EDGES_KEPT)
    return Finding(
        format=FORMAT,
        version=VERSION,
        model=own_name(opened.name),
        digest=digest_of(opened),
        shape=shape_of(opened),
        metric=question.metric,
        method=measured.method,
        steps=METHODS[measured.method],
        pairs=tuple(found_pair(opened, question.metric, pair) for pair in question.pairs),
        clean=_mean(scores.clean),
        corrupted=_mean(scores.corrupted),
        embedding=found[Place("embedding")],
        heads=heads,
        feed_forward=tuple(
            FoundLayer(**vars(each), layer=place.layer)
            for place, each in found.items()
            if place.kind == "feed-forward"
        ),
        edges=tuple(scores.edge(*edge, patched.get(at)) for at, edge in enumerate(strongest)),
        edges_in_all=len(scores.order),
        correlation=correlation([about for about, _ in known], [value for _, value in known]),
        faithfulness=tuple(measured.points),
        minimum=measured.smallest,
    )


def found_pair(opened: Opened, metric: str, pair: TokenPair) -> FoundPair:
    """A pair with its answers as another model can be asked for them."""
    texts = pair.texts
    answers = (
        (texts.clean, texts.answer, pair.answer),
        (texts.corrupted, texts.against, pair.against),
    )
    typed = [_typed(opened, *each) for each in answers[: ANSWERS_READ[metric]]]
    answer, against = [*typed, "", ""][:2]
    return FoundPair(
        clean=texts.clean,
        corrupted=texts.corrupted,
        answer=answer,
        against=against,
        clean_tokens=tuple(each.label for each in pair.clean),
        corrupted_tokens=tuple(each.label for each in pair.corrupted),
        names=pair.names,
        clean_value=pair.clean_value,
        corrupted_value=pair.corrupted_value,
    )


def _typed(opened: Opened, before: str, given: str, option: int) -> str:
    """What was typed; of a likeliest answer a text that is read as it, if there is one."""
    if given.strip():
        return given
    if opened.config.head == "classifier":
        return option_name(opened, option)
    text = opened.tokenizer.label(option).replace(SPACE, " ").replace(NEWLINE, "\n")
    pieces = pieces_of(opened, before, text) if text.strip() else ()
    return text if [each.id for each in pieces] == [option] else ""


def _mean(values: Sequence[float]) -> MeanAndSpread:
    return MeanAndSpread(fmean(values), stdev(values) if len(values) > 1 else None)
