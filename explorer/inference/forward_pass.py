"""One forward pass of a model over a text, and everything the pages show of it.

It runs once and is kept: it records the queries, keys and values of every head, and the weights
of the head on screen are computed from them by the function that the model itself uses.
A forward pass never changes, so many sessions may share one.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from explorer.catalog.attention_parts import Part, parts, site
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import TooLargeError
from explorer.inference.answers import Answer, answer_of, written_answer
from explorer.inference.generation_limits import longest_answer
from explorer.inference.model_inputs import ids_of, positions_shown, record
from explorer.inference.results_cache import cached
from explorer.interventions.edits import Intervention
from explorer.system.cooperative import interruptible, step
from explorer.system.limits import PASS_TOKENS
from explorer.text import AnyTokenizer, TextError, Token
from explorer.text.checked_text import ForwardPassError, truncate
from explorer.text.visible_text import in_quotes, readable
from models import TransformerConfig
from models.interventions import Edit
from models.trace import Trace

WEIGHTS_HELD = 1 << 22
"""The most attention weights in memory at once, where a view goes through all heads."""


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """A text, its tokens, the recorded pass and the answer.

    The encoder read `source` and the decoder read `target` (empty where the model has no such
    stack); each step of a generating decoder wrote one of the `output_tokens`. `row` is the place
    of this text in its batch.
    """

    text: str
    config: TransformerConfig
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    output_tokens: tuple[Token, ...]
    trace: Trace
    answer: Answer
    notes: tuple[str, ...] = ()
    row: int = 0
    pair: str = ""
    folder: Path = Path()
    """The folder of the model."""
    reads_prompts: bool = False
    """Whether the special tokens that are written in the text were read as such."""
    edits: tuple[Intervention, ...] = ()
    """The reader's interventions in this pass."""

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Distinguishes it from other passes of its model; a decoder may read another answer."""
        return self.text, self.pair, self.edits, self.target if self.source else ()

    @property
    def bytes(self) -> int:
        return self.trace.nbytes

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.source or self.target

    @property
    def last_stack_tokens(self) -> tuple[Token, ...]:
        """The tokens of the stack whose residual stream the output head reads."""
        return self.target or self.source

    @property
    def predicted_ids(self) -> Tensor:
        """The token ID that each position should predict, as far as there is one, (tokens,).

        The next token of the text, or the generated one. Empty where the model predicts no next
        token. For a replaced token it is the ID of the new token.
        """
        if self.config.head != "language-model" or self.config.kind == "encoder":
            return torch.zeros(0, dtype=torch.long)
        predicted = self.output_tokens if self.source else self.target[1:]
        return torch.tensor([token.id for token in predicted], dtype=torch.long)

    @property
    def typed(self) -> str:
        """The typed text, and a second text on a line of its own."""
        return f"{self.text}\n{self.pair}" if self.pair else self.text

    @property
    def placed(self) -> tuple[Token, ...]:
        """The typed tokens, with their spans in `typed`."""
        behind = len(self.text) + 1
        return tuple(
            replace(token, start=behind + token.start, end=behind + token.end)
            if token.second and token.end > token.start
            else token
            for token in self.tokens
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        return parts(self.config)

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def rows(self, part: str) -> tuple[Token, ...]:
        """The queries. A step of a generating decoder is named by the token that it generates."""
        if part == "encoder.self_attn":
            return self.source
        return self.output_tokens if part == "decoder.cross_attn" else self.target

    def columns(self, part: str) -> tuple[Token, ...]:
        return self.target if part == "decoder.self_attn" else self.source

    def weights(self, part: str, layer: int, head: int) -> Tensor:
        """Attention weights (rows, columns); a row sums to one, or to zero if all is masked."""
        return self.trace.weights(site(part, layer), head=head)[self.row]

    def scores(self, part: str, layer: int, head: int) -> Tensor:
        """Scaled q·k of one head, before any bias and mask."""
        return self.trace.scores(site(part, layer), head=head)[self.row]

    def bias(self, part: str, layer: int, head: int) -> Tensor | None:
        """What positions add to the scores before the softmax; None where they add nothing."""
        bias = self.trace.bias(site(part, layer), slice(head, head + 1))
        return None if bias is None else bias.expand(self.row + 1, -1, -1, -1)[self.row, 0]

    def mask(self, part: str, layer: int = 0) -> Tensor:
        """Which columns each row may attend to (rows, columns). True = may attend."""
        shape = (len(self.rows(part)), len(self.columns(part)))
        mask = self.trace[f"{site(part, layer)}.mask"]
        return mask.expand(max(mask.shape[0], self.row + 1), -1, *shape)[self.row, 0]

    def some_heads(self, part: str, layer: int) -> Iterator[Tensor]:
        """The weights of one layer (heads, rows, columns), a few heads at a time.

        All at once where they fit, else one by one, so memory does not grow with the heads.
        """
        heads = self.part(part).heads
        step()
        if heads * len(self.rows(part)) * len(self.columns(part)) <= WEIGHTS_HELD:
            yield self.trace.weights(site(part, layer))[self.row]
            return
        for head in interruptible(range(heads)):
            yield self.weights(part, layer, head)[None]

    def all_weights(self, part: str) -> Tensor:
        """The weights of all heads, (layers, heads, rows, columns); only for a small pass."""
        layers = range(self.part(part).layers)
        return torch.stack([torch.cat([*self.some_heads(part, layer)]) for layer in layers])


def run_text(opened: OpenModel, text: str, pair: str = "") -> ForwardPass:
    """The model's forward pass over the text, or pair of texts, run once and kept.

    ForwardPassError says why there is none.
    """
    return run_batch(opened, (text,), pair)[0]


def run_batch(opened: OpenModel, texts: tuple[str, ...], pair: str = "") -> tuple[ForwardPass, ...]:
    """Several texts in one pass: the shorter ones are padded to the length of the longest.

    It is run once and kept; `run_batch_uncached` always runs it.
    """
    return cached(
        opened,
        (texts, pair),
        lambda: run_batch_uncached(opened, texts, pair),
        lambda passes: passes[0].bytes,
    )


def run_batch_uncached(
    opened: OpenModel, texts: tuple[str, ...], pair: str = ""
) -> tuple[ForwardPass, ...]:
    """The same without the cache. Memory grows with tokens × layers, time also with tokens²."""
    try:
        return _batch(opened, texts, pair)
    except TextError as error:  # a stranger's tokenizer may fail at any word
        raise ForwardPassError(str(error)) from error
    except TooLargeError as error:
        if len(texts) > 1 or not error.tokens:
            raise
        cut = truncate(opened.tokenizer.encode, texts[0], pair, error.tokens)
        raise ForwardPassError(str(error), cut) from error


def _batch(opened: OpenModel, texts: tuple[str, ...], pair: str) -> tuple[ForwardPass, ...]:
    config = opened.config
    encoded = [encode_text(opened.tokenizer, config, text, pair) for text in texts]
    inputs = _pad(opened, encoded)
    nothing: list[tuple[Token, ...]] = [()] * len(texts)
    target = output = nothing
    answers: list[tuple[Token, ...]] = []
    source = nothing if config.kind == "decoder" else inputs
    if config.kind == "decoder":
        target = inputs
    elif config.kind == "encoder-decoder":
        answers = _generate(opened, ids_of(inputs))
        full = _pad(opened, answers)
        target, output = [row[:-1] for row in full], [row[1:] for row in full]
    passed = _record(opened, source, target)
    overflow = not_finite(passed)
    return tuple(
        ForwardPass(
            text=text,
            config=config,
            source=source[row],
            target=target[row],
            output_tokens=output[row],
            trace=passed,
            answer=written_answer(opened, answers[row])
            if answers
            else answer_of(opened, passed.output[row], encoded[row]),
            notes=(*unknown(opened, text, pair, encoded[row]), *overflow),
            row=row,
            pair=pair,
            folder=opened.folder,
            reads_prompts=opened.reads_prompts,
        )
        for row, text in enumerate(texts)
    )


def _record(
    opened: OpenModel,
    source: Sequence[tuple[Token, ...]],
    target: Sequence[tuple[Token, ...]],
    edits: Sequence[Edit] = (),
) -> Trace:
    """One recorded pass over the rows of both stacks, empty where the model has no such stack."""
    stacks = [rows for rows in (source, target) if rows[0]]
    return record(opened, *stacks, read_at=positions_shown(opened, stacks[0]), edits=edits)


def rerun(
    opened: OpenModel,
    forward: ForwardPass,
    source: tuple[Token, ...],
    target: tuple[Token, ...],
    edits: Sequence[Edit],
) -> ForwardPass:
    """One more forward pass of a text, with these tokens and edits; not kept.

    The decoder of an encoder-decoder reads the answer of the first pass, so that every step can be
    compared. Raises EditError, and TooLargeError where there is no room for it.
    """
    passed = _record(opened, [source], [target], edits)
    if source and target:
        steps = [opened.tokenizer.token(i) for i in passed.output[0].argmax(-1).tolist()]
        answer = written_answer(opened, [target[0], *steps])
    else:
        answer = answer_of(opened, passed.output[0], source or target)
    return replace(
        forward,
        source=source,
        target=target,
        trace=passed,
        answer=answer,
        row=0,
        folder=opened.folder,
    )


def encode_text(
    tokenizer: AnyTokenizer,
    config: TransformerConfig,
    text: str,
    pair: str = "",
    reader: str = "this model",
) -> tuple[Token, ...]:
    """The tokens that a model reads for a text; its weights are not needed.

    ForwardPassError says why it cannot read it, and calls it `reader`.
    """
    if not text.strip():
        raise ForwardPassError("There is nothing to read yet: type a sentence.")
    try:
        tokens = tokenizer.encode(text, pair or None)
    except TextError as error:
        raise ForwardPassError(str(error)) from error
    if all(token.special and token.start == token.end for token in tokens):
        raise ForwardPassError("There is nothing to read in this text: type a sentence with words.")
    fit = config.max_len
    if not PASS_TOKENS.allows(min(len(tokens), fit + 1)):
        short = truncate(tokenizer.encode, text, pair, min(fit, PASS_TOKENS.most))
        raise ForwardPassError(PASS_TOKENS.refusal(len(tokens)), short)
    if len(tokens) > fit:
        short = truncate(tokenizer.encode, text, pair, fit)
        way = f"shorten it to {short.in_words}." if short else "choose another model."
        long = f"This text is {len(tokens):,} tokens long and {reader} reads at most {fit}: "
        raise ForwardPassError(long + way, short)
    vocab_size = config.src_vocab_size or config.vocab_size
    if stray := next((token for token in tokens if token.id >= vocab_size), None):
        raise ForwardPassError(
            f"“{stray.label[:20]}” is token {stray.id:,}, but {reader} knows {vocab_size:,}: its "
            "tokenizer belongs to another model."
        )
    return tokens


def unknown(
    opened: OpenModel, text: str, pair: str, tokens: Sequence[Token], done: str = "read"
) -> tuple[str, ...]:
    """One sentence that names the words without a token in this vocabulary."""
    words, name = unknown_words(opened.tokenizer, text, pair, tokens)
    return (f"Not in this model's vocabulary, so {done} as {name}: {words}.",) if words else ()


def unknown_words(
    tokenizer: AnyTokenizer, text: str, pair: str, tokens: Sequence[Token]
) -> tuple[str, str]:
    """The words without a token in this vocabulary, quoted, and the token read for them."""
    unknown = [t for t in tokens if t.id == tokenizer.unk_id and t.end > t.start]
    words = list(dict.fromkeys((pair if t.second else text)[t.start : t.end] for t in unknown))
    if not words:
        return "", ""
    named = ", ".join(in_quotes(readable(word[:20])) for word in words[:5])
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return named + more, unknown[0].label


def not_finite(passed: Trace) -> tuple[str, ...]:
    """One sentence that names the first recorded value with an infinite number or NaN in it."""
    for name, value in {**passed.values, "the output": passed.output}.items():
        if value.is_floating_point() and not all(end.isfinite() for end in value.aminmax()):
            return (
                f"This forward pass has values that are not finite, first in {name}: the model's "
                "weights are too large. What depends on them has no value; the page Models "
                "shows the weights.",
            )
    return ()


def _pad(opened: OpenModel, rows: Sequence[tuple[Token, ...]]) -> list[tuple[Token, ...]]:
    longest = max(len(row) for row in rows)
    if all(len(row) == longest for row in rows):
        return list(rows)
    pad = opened.config.pad_id
    if pad is None:
        raise ForwardPassError("This model has no padding token, so it reads one text at a time.")
    return [(*row, *[opened.tokenizer.token(pad)] * (longest - len(row))) for row in rows]


def _generate(opened: OpenModel, source: Tensor) -> list[tuple[Token, ...]]:
    """The decoder's answer to each source, from its first token to its last."""
    longest, ends = max(2, longest_answer(opened)), opened.config.generation.eos_ids
    rows = opened.model.generate(source, max_length=longest, greedy=True).tolist()
    stops = (next((i for i, token in enumerate(row) if i and token in ends), None) for row in rows)
    return [
        tuple(map(opened.tokenizer.token, row if stop is None else row[: stop + 1]))
        for row, stop in zip(rows, stops, strict=True)
    ]
