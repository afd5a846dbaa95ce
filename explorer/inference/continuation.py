"""What a model may write next behind the reader's text and what was written already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.sampling_stages import Stages, chance_at
from explorer.catalog.opened_model import Opened
from explorer.inference.branches import Branches
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text, unknown
from explorer.inference.generated_text import MOST_WRITTEN, ONLY_READS, writes
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import is_kept, kept, size_of
from explorer.text import TextError, Token
from models import TransformerConfig, trace
from models.generation import Sampling, allowed_rows, choose_from, drawn
from models.going_on import GoingOn
from models.masking import keep_of
from models.trace import CHEAP_SITES

Report = Callable[[float], None]
"""Is told which share of the work is done."""
NO_NUMBERS = "This model's logits are no numbers, so nothing follows from them: choose another."


@dataclass(frozen=True)
class Start:
    """What stands there before the first token: the source, and what the decoder begins with."""

    source: tuple[Token, ...]
    begun: tuple[Token, ...]
    room: int
    """How many tokens fit behind it; the last of them is written without being read."""


@dataclass(frozen=True, eq=False)
class Stand:
    """A pass over the text and what was written: `logits` (vocabulary,) of what comes next.

    They are −∞ where the model may not write. `forward` has one row for every token that
    was written, and one for the next. `given` are the log-probabilities, in nats, that the
    model gave to what was written.
    """

    forward: ForwardPass
    logits: Tensor
    given: tuple[float, ...]


def start_of(opened: Opened, text: str) -> Start:
    """Where writing begins; ReadingError where the model cannot write, or not read this text."""
    if not writes(opened):
        raise ForwardPassError(ONLY_READS)
    forward = run_text(opened, text)
    if bool(forward.trace.output.isnan().any()):
        raise ForwardPassError(NO_NUMBERS)
    begun = forward.target[:1] if forward.source else forward.target
    return Start(forward.source, begun, min(MOST_WRITTEN, opened.config.max_len - len(begun) + 1))


def stand(opened: Opened, text: str, path: Sequence[int]) -> Stand:
    """The pass after these tokens were written; made once and kept.

    Cost grows with tokens × layers, and tokens² in time.
    """
    return kept(
        opened,
        ("decoding", text, tuple(path)),
        lambda: _stand(opened, text, path),
        lambda made: made.forward.bytes,
    )


def _stand(opened: Opened, text: str, path: Sequence[int]) -> Stand:
    start, forward, config = start_of(opened, text), run_text(opened, text), opened.config
    tokens = tuple(map(opened.tokenizer.token, path))
    full = (*start.begun, *tokens)
    target = ids_of([full])
    behind = slice(len(start.begun) - 1, None)
    how: dict[str, Any] = {"read_at": behind, "sites": CHEAP_SITES}
    keep = _as_written(start, config, target)
    if start.source:
        source = ids_of([start.source])
        how |= {"source_keep": keep_of(source, config.pad_id), "target_keep": keep}
        passed = trace(opened.model, source, target, **how)
    else:
        passed = trace(opened.model, target, keep=keep, **how)
    may = allowed_rows(passed.output[0].float(), config, first=len(start.begun) == 1)
    written = torch.tensor(list(path), dtype=torch.long)[:, None]
    given = may[:-1].log_softmax(-1).gather(-1, written)[:, 0].tolist()
    rows = (*tokens, NEXT) if start.source else ()
    whole = replace(forward, target=full, written=rows, trace=passed, row=0)
    return Stand(whole, may[-1].clone(), tuple(given))


NEXT = Token(-1, "next", 0, 0, special=True)
"""The row of what is not chosen yet."""


def tokens_of(opened: Opened, start: Start, path: Sequence[int], typed: str) -> list[int]:
    """The tokens of what a reader writes here; ReadingError says why it cannot be written."""
    if not typed.strip():
        return []
    try:
        found = [t for t in opened.tokenizer.encode(typed) if not (t.special and t.start == t.end)]
    except TextError as error:
        raise ForwardPassError(str(error)) from error
    room = start.room - len(path)
    if len(found) > room:
        raise ForwardPassError(
            f"This is {len(found):,} tokens long and there is room for {room:,}: write less."
        )
    for place, token in enumerate(found):
        if token.id >= opened.config.vocab_size:
            raise ForwardPassError(f"“{token.label[:20]}” is no token that this model can write.")
        if token.id in ends(opened) and place < len(found) - 1:
            raise ForwardPassError(f"{token.label[:20]} ends the text: write nothing behind it.")
    return [token.id for token in found]


def unknown_in(opened: Opened, typed: str) -> tuple[str, ...]:
    """One sentence that names what of this the model has no token for, where there is such."""
    return unknown(opened, typed, "", opened.tokenizer.encode(typed), "written")


def ends(opened: Opened) -> set[int]:
    """The tokens after which nothing is written."""
    return {end for end in (opened.config.eos_id, *opened.config.more_eos_ids) if end is not None}


def why_stopped(opened: Opened, start: Start, path: Sequence[int]) -> str:
    """Why nothing more is written behind these tokens, in a sentence; nothing where it goes on."""
    if path and path[-1] in ends(opened):
        return f"Stopped: {opened.tokenizer.label(path[-1])} ends the text."
    if len(path) < start.room:
        return ""
    if start.room < MOST_WRITTEN:
        return f"Stopped: all {opened.config.max_len:,} places of this model are filled."
    return f"Stopped: {MOST_WRITTEN} tokens are the most that are written here."


def shown(found: Stages, count: int, also: Sequence[int] = ()) -> list[int]:
    """`count` tokens in the order of their logits: the likeliest, and these others in any case."""
    others = list(dict.fromkeys(also))[: count // 2]
    best = found.logits.topk(min(count, len(found.logits))).indices.tolist()
    missing = [token for token in others if token not in best]
    kept_back = set(others)
    while missing and len(best) + len(missing) > count:
        best.remove(next(token for token in reversed(best) if token not in kept_back))
    return sorted((*best, *missing), key=lambda token: -float(found.logits[token]))


def rank(found: Stages, token: int) -> int:
    """Which place a token has by its logit, the likeliest being 1."""
    return 1 + int((found.logits > found.logits[token]).sum())


def drawn_on(
    opened: Opened, text: str, path: Sequence[int], sampling: Sampling, seed: int
) -> Iterator[int]:
    """Tokens behind a path, the same as are drawn one by one; each costs one token's pass."""
    going = _going_on(opened, text)
    logits = going.read(torch.tensor([path]))[:, -1] if path else going.first
    generator = chance_at(seed, len(path), logits.shape[-1], sampling)
    while True:
        token = int(drawn(choose_from(logits.float(), sampling), sampling, generator))
        yield token
        logits = going.read(torch.tensor([[token]]))[:, -1]


def log_chances(
    opened: Opened, text: str, found: Branches, standing: Stand, here: int, report: Report
) -> tuple[float, ...]:
    """What the model gave each node where it was written, in nats; 0 for the start.

    `standing` is the pass at node `here`: with what it says, one more move costs nothing.
    Made once for each state of the branches; only these numbers are kept.
    """
    found, behind = found.written, standing.logits.log_softmax(-1)
    known = dict(zip(found.line(here), standing.given, strict=True))
    known |= {node: float(behind[token]) for token, node in found.children[here].items()}
    return _log_chances(opened, text, found, known, report)


def _log_chances(
    opened: Opened, text: str, found: Branches, known: dict[int, float], report: Report
) -> tuple[float, ...]:
    def of(state: Branches, make: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
        return kept(opened, ("chances", text, state.made), make, size_of)

    state = found  # back to the first that is kept, or whose last move has an unknown node
    while state.done and not is_kept(opened, ("chances", text, state.made)):
        if any(at not in known for at in range(len(state.before.nodes), len(state.nodes))):
            break
        state = state.before
    first: tuple[float, ...] = (0.0,)
    if state.done:
        first = of(state, lambda: _read_all(_going_on(opened, text), state, report))
    later = (known[at] for at in range(len(state.nodes), len(found.nodes)))
    return first if state is found else of(found, lambda: (*first, *later))


def _read_all(going: GoingOn, found: Branches, report: Report) -> tuple[float, ...]:
    """One pass for each leaf, over what it does not share with the leaf before."""
    first, tokens = going.first[0].log_softmax(-1), torch.tensor([n.token for n in found.nodes])
    chances, held, lines = [0.0] * len(tokens), list[int](), sorted(map(found.line, found.leaves()))
    for done, line in enumerate(lines):
        report(done / len(lines))
        chances[line[0]] = float(first[tokens[line[0]]])
        fed = line[:-1]
        if not fed:
            continue
        shared = sum(own == other for own, other in zip(fed, held, strict=False))
        again = max(0, shared - 1)  # the last that is shared says what follows it
        going.back_to(again)
        logits = going.read(tokens[fed[again:]][None])[0].float()
        behind = line[again + 1 :]
        given = logits.log_softmax(-1).gather(-1, tokens[behind][:, None])[:, 0]
        for node, chance in zip(behind, given.tolist(), strict=True):
            chances[node] = chance
        held = fed
    return tuple(chances)


def _going_on(opened: Opened, text: str) -> GoingOn:
    start = start_of(opened, text)
    return GoingOn(opened.model, ids_of([start.source or start.begun]))


def _as_written(start: Start, config: TransformerConfig, ids: Tensor) -> Tensor:
    """Everything that was written counts, also where it is the model's own filler (1, tokens)."""
    keep = torch.ones_like(ids, dtype=torch.bool)
    prompt = None if start.source else keep_of(ids[:, : len(start.begun)], config.pad_id)
    if prompt is not None:
        keep[:, : len(start.begun)] = prompt
    return keep
