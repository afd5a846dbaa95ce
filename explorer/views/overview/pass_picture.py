"""The picture of the whole pass of a page's context: its shares, its answers, its lens."""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from explorer.analysis.information_flow import kept_flow, most_tokens
from explorer.analysis.logit_lens import likeliest_by_position
from explorer.analysis.output_change import has_words, last_streams
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.catalog.opened_model import OpenModel
from explorer.components.pass_map import MOST_OPTIONS, MapAnswer, MapStack, PassMap
from explorer.inference.answers import class_names, first_place
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import is_kept, kept
from explorer.text.token_labels import candidate_text, labels_of

LAYERS_AT_ONCE = 4

NO_CHARACTER = "\ufffd"
Cell = tuple[str, float]
STACK_TITLES = {"encoder": "Encoder", "decoder": "Decoder"}
BEHIND = {
    "decoder": "After {token}",
    "encoder": "In place of {token}",
    "encoder-decoder": "After {token}",
}


def too_long(forward: ForwardPass) -> str:
    """That the text is too long for the picture, and the way out."""
    tokens = max(len(forward.source), len(forward.target))
    return (
        f"The picture of the pass is drawn for texts of up to {most_tokens(forward):,} tokens of "
        f"this model, and this one has {tokens:,}: shorten it, or look at the page Attention maps."
    )


def picture_of(opened: OpenModel, forward: ForwardPass) -> PassMap:
    """All that the map shows of a pass at first, computed once."""
    key = "picture of the pass", forward.text, forward.pair
    # What it holds is counted where the shares and the pass are kept.
    return kept(opened, key, lambda: _picture(opened, forward), lambda _: 0)


def _picture(opened: OpenModel, forward: ForwardPass) -> PassMap:
    flow = kept_flow(opened, forward)
    stacks = [
        MapStack(
            name,
            STACK_TITLES[name],
            forward.source if name == "encoder" else forward.target,
            list(flow.stacks[name][0].attended) if flow.stacks[name] else [],
        )
        for name in flow.stacks
    ]
    words = has_words(forward.config)
    behind = BEHIND[forward.config.kind] if words else "Class of the text"
    passed = repr((id(opened), forward.text, forward.pair)).encode()
    of = hashlib.sha256(passed).hexdigest()[:12]
    asked = first_answer(opened, forward)
    known = {}
    if words:
        known = {asked: answers(opened, forward, range(asked, asked + 1))[0]}
    elif forward.config.head == "classifier":
        known = {0: _class(opened, forward)}
    return PassMap(flow, stacks, known, forward.config.n_heads, behind, words, of)


def _class(opened: OpenModel, forward: ForwardPass) -> MapAnswer:
    names = class_names(opened)
    p = forward.trace.output[forward.row].softmax(-1)
    top = p.topk(min(MOST_OPTIONS, len(p)))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    found = [(names[i], value) for i, value in pairs]
    return MapAnswer(found[0][0], found)


def answers(opened: OpenModel, forward: ForwardPass, places: range) -> list[MapAnswer]:
    """What the model answers at some positions. Cost grows with these × d_model × vocabulary."""
    stream = _stream(forward, -1)[:, places.start : places.stop]
    tokens = [each.label for each in forward.last_stack_tokens]
    values, indices = likeliest_by_position(forward.trace, stream, MOST_OPTIONS)
    labels = iter(labels_of(opened.tokenizer, indices.flatten().tolist()))
    made = []
    for place, row in zip(places, values.tolist(), strict=True):
        before = tokens[: place + 1] if forward.config.kind == "decoder" else ()
        cells = [(candidate_text(next(labels), before), p) for p in row]
        made.append(MapAnswer(cells[0][0], cells))
    return made


def all_answers(opened: OpenModel, forward: ForwardPass) -> list[MapAnswer]:
    """What the model answers at every position, computed once."""
    key = "answers of the map", forward.text, forward.pair
    places = range(len(forward.last_stack_tokens))
    return kept(opened, key, lambda: answers(opened, forward, places))


def first_answer(opened: OpenModel, forward: ForwardPass) -> int:
    """The answer that is traced first; the only one where the model gives a class."""
    if forward.config.head == "classifier":
        return 0
    return first_place(opened, forward.last_stack_tokens)


def continued(opened: OpenModel, forward: ForwardPass) -> tuple[str, ...]:
    """The text with each of the likeliest next tokens behind it; empty where it cannot stand there.

    That is a token that ends the text, or a part of a character. Nothing where the model does
    not continue a text. Computed once.
    """
    config = forward.config
    if config.kind != "decoder" or config.head != "language-model":
        return ()
    key = "continued", forward.text, forward.pair
    return kept(opened, key, lambda: _continued(opened, forward))


def _continued(opened: OpenModel, forward: ForwardPass) -> tuple[str, ...]:
    _, indices = likeliest_by_position(forward.trace, _stream(forward, -1)[:, -1:], MOST_OPTIONS)
    ids = [token.id for token in forward.target]
    before, texts = opened.tokenizer.decode(ids), []
    for option in indices[0].tolist():
        after = opened.tokenizer.decode([*ids, option])
        is_whole = after.startswith(before) and not after.endswith(NO_CHARACTER)
        added = after[len(before) :] if is_whole else ""
        fits = added and len(forward.text) + len(added) <= TEXT_LIMIT
        texts.append(forward.text + added if fits else "")
    return tuple(texts)


def _stream(forward: ForwardPass, layer: int) -> Tensor:
    """What leaves a layer of the last stack, (1, tokens, d)."""
    stack, count = last_streams(forward.config)
    passed = forward.trace[f"{stack}.{layer % count}.resid_post"]
    return passed[forward.row : forward.row + 1]


def _words(opened: OpenModel, values: Tensor, indices: Tensor) -> tuple[tuple[Cell, ...], ...]:
    labels = iter(labels_of(opened.tokenizer, indices.flatten().tolist()))
    return tuple(
        tuple((str(candidate_text(next(labels))), p) for p in row) for row in values.tolist()
    )


def hand_over_lens(
    opened: OpenModel,
    forward: ForwardPass,
    hand: Callable[[int, Sequence[Sequence[Cell]]], None],
) -> None:
    """Read the logit lens from above, some layers at a time, and hand each on as it is there.

    Cost grows with layers × tokens × d_model × vocabulary: more than the pass itself. A script
    that is run again ends it between two of them.
    """
    _, count = last_streams(forward.config)
    for first in reversed(range(0, count, LAYERS_AT_ONCE)):
        layers = range(first, min(count, first + LAYERS_AT_ONCE))
        key = "lens of the map", forward.text, forward.pair, first
        rows = kept(opened, key, lambda: _lens(opened, forward, layers))  # noqa: B023
        hand(first, rows)


def is_read(opened: OpenModel, forward: ForwardPass) -> bool:
    """Whether all of the lens is there to be had at once."""
    return is_kept(opened, ("lens of the map", forward.text, forward.pair, 0))


def _lens(opened: OpenModel, forward: ForwardPass, layers: range) -> list[list[Cell]]:
    streams = torch.cat([_stream(forward, layer) for layer in layers], 1)
    words = [row[0] for row in _words(opened, *likeliest_by_position(forward.trace, streams, 1))]
    tokens = len(words) // len(layers)
    return [words[at * tokens : (at + 1) * tokens] for at in range(len(layers))]
