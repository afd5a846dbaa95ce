"""The data of a training before it starts: batches as the model reads them, and their summary."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
import torch

from explorer.app.session import state_of
from explorer.charts.bars import block_bars, height_of
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from explorer.tasks.data_summary import (
    DataSummary,
    examples_of,
    masks_of,
    summary_of,
    unknown_words,
)
from explorer.text import Token
from explorer.text.number_format import three
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.shared.batch_example import BATCH_EXPLAINED, TOKENS_SHOWN, draw_example
from explorer.views.shared.tables import table
from models.config import TrainConfig
from models.training import Batch

EXAMPLES_SHOWN = 4
"""Examples of the first batch."""
MOST_BARS = 12
MASK_HEIGHT = 320
SITES = {
    "encoder.0.self_attn": "self-attention of the encoder",
    "decoder.0.self_attn": "self-attention of the decoder",
    "decoder.0.cross_attn": "cross-attention",
}


@dataclass
class RequestedRun:
    """The run that the form describes; no spec while it cannot be trained."""

    spec: RunSpec | None = None
    tokenizer: str | None = None
    """A tokenizer other than the task's usual one."""
    has_own_text: bool = False
    """Whether its text is another than the one that comes with the app."""


def draw_data(task: Task | None) -> None:
    """Draw the data of the training that the form describes, once the task has its text."""
    if task is None:
        st.markdown("The data appear once the text of the task can be read.")
        return
    spec = state_of(RequestedRun).spec
    training = spec.training if spec else task.training
    summary = summary_of(task, training)
    batches = "first batch" if summary.batches == 1 else f"first {summary.batches} batches"
    batches_words = f"{batches} ({summary.examples:,} examples)"
    _draw_examples(task, training)
    size = task.training_size
    training_data = "drawn anew for each batch" if size is None else f"{size:,} examples"
    st.markdown(
        f"**Training:** {training_data}. **Held out**, never trained on: "
        f"{literal_sentence(task.held_out)}. {summary.held_out:,} of them are measured; "
        f"{summary.leaked:,} of these occur in the {batches_words}."
    )
    if task.note:
        st.caption(literal_sentence(task.note))
    left, right = st.columns(2, gap="medium")
    with left:
        names = ("Tokens of the source", "Tokens of the target")
        for at, lengths in enumerate(summary.lengths):
            title = names[at] if len(summary.lengths) > 1 else "Tokens of an example"
            _draw_bars(title, length_bars(lengths), f"data_lengths_{at}")
    with right:
        if summary.classes:
            _draw_bars("Classes", summary.classes, "data_classes")
        _draw_unknown(task, summary, batches_words)


def _draw_examples(task: Task, training: TrainConfig) -> None:
    """The first rows of the first batch as texts, then token by token, and the masks of one."""
    batch = task.batch(0, training)
    examples = examples_of(task, batch, EXAMPLES_SHOWN)
    st.markdown(
        f"**The first {len(examples)} of {len(batch.labels):,} examples of the first batch**"
    )

    def text(tokens: Sequence[Token]) -> str:
        return task.tokenizer.decode([token.id for token in tokens if not token.special])

    answers = [example.label or text(example.targets) for example in examples]
    table({"it reads": [text(row.inputs[0]) for row in examples], "it must answer": answers})
    with st.expander("Token by token"):
        of_class = "Muted tokens are special or padding; padding is masked."
        st.caption(of_class if task.classes else BATCH_EXPLAINED)
        for at, example in enumerate(examples):
            draw_example(example, f"example {at + 1}", f"data_{at}")
    with st.expander("Masks of the first example"):
        _draw_masks(task, batch)


def _draw_masks(task: Task, batch: Batch) -> None:
    """What each query may attend to in the first row: no padding, and in a decoder no future."""
    first = Batch(tuple(ids[:1, :TOKENS_SHOWN] for ids in batch.inputs), batch.labels[:1])
    masks = masks_of(task, first, 0)
    no_labels = torch.zeros(1, 1, dtype=torch.long)
    labels = examples_of(task, Batch(first.inputs, no_labels), 1)[0].inputs
    for column, (site, allowed) in zip(st.columns(len(masks)), masks.items(), strict=True):
        queries = labels[-1] if site.startswith("decoder") else labels[0]
        keys = labels[0] if "cross" in site else queries
        with column:
            st.caption(SITES[site])
            matrix(
                allowed.expand(len(queries), -1).float(),
                queries,
                keys,
                key=f"data_mask_{site}",
                scale="mask",
                allowed=allowed.expand(len(queries), -1),
                title=f"{task.title} · Mask, {SITES[site]}",
                height=MASK_HEIGHT,
            )


def length_bars(lengths: Sequence[int]) -> dict[str, int]:
    """How many examples have so many tokens, in at most a dozen ranges of one width."""
    low, high = min(lengths), max(lengths)
    width = -(-(high - low + 1) // MOST_BARS)
    counts = Counter((length - low) // width for length in lengths)
    starts = {at: low + at * width for at in range((high - low) // width + 1)}
    return {
        str(start) if width == 1 else f"{start}–{start + width - 1}": counts[at]
        for at, start in starts.items()
    }


def _draw_bars(title: str, counts: Mapping[str, int], key: str) -> None:
    st.markdown(f"**{title}**")
    names = [literal(name) for name in counts]
    spec = block_bars(names, [*counts.values()], "examples")
    chart(spec, key=key, title=title, height=height_of(names))


def _draw_unknown(task: Task, summary: DataSummary, counted: str) -> None:
    """What the vocabulary does not know, in these batches and among what is held out."""
    st.markdown("**Unknown to the vocabulary**")
    if task.tokenizer.unk_id is None:
        st.caption("None: it reads every text, byte by byte where needed.")
        return
    unknown = summary.unknown / max(1, summary.tokens)
    st.caption(
        f"{three(100 * unknown)} % of {summary.tokens:,} tokens in the "
        f"{counted}, and {three(100 * summary.held_out_unknown)} % in the held-out data."
    )
    words = unknown_words(task)
    if words:
        table({"unknown": [word for word, _ in words], "times": [count for _, count in words]})
        st.caption("The most frequent ones in the held-out data.")
