"""The token embedding in three dimensions, with the reader's tokens and their neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from torch import nn
from torch.linalg import LinAlgError

from explorer.analysis.embedding_pca import MOST_CHOSEN, EmbeddingSpace, embedding_space
from explorer.catalog.opened_model import Opened
from explorer.charts.space_scatter import embedding_scatter
from explorer.charts.theme import palette
from explorer.components.chart import plotly_chart
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text import AnyTokenizer, PublishedTokenizer, TextError
from explorer.text.number_format import fixed
from explorer.text.token_labels import candidate_text

OTHERS, NEIGHBOURS, YOURS = "vocabulary", "nearest neighbours", "your tokens"


def draw_embedding_space(opened: Opened, forward: ForwardPass) -> None:
    """An expander; nothing is computed while it is closed."""
    with st.expander("Embedding space in 3-D", key="embedding_space", on_change="rerun") as panel:
        if not panel.open:
            return
        stack = opened.model.encoder if forward.source else opened.model.decoder
        if stack is None or not isinstance(stack.embedding, nn.Embedding):
            st.caption("This model has no token embedding.")
            return
        table = stack.embedding.weight
        ids = tuple(token.id for token in forward.tokens)
        try:
            with st.spinner("Finding the principal components"):
                found = kept(
                    opened,
                    ("embedding space", ids),
                    lambda: embedding_space(table, ids),
                    lambda made: made.places.nbytes,
                )
            labels = labels_of(opened.tokenizer, found.ids)
        except LinAlgError:
            st.caption(
                "The embedding contains NaN or infinite values, so it has no principal components."
            )
            return
        except TextError as error:
            st.text(str(error))
            return
        _draw(found, labels)
        _neighbours(found, dict(zip(found.ids, labels, strict=True)))


def labels_of(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """How to show these tokens; an ID that the vocabulary leaves free is shown as `<50300>`."""
    if isinstance(tokenizer, PublishedTokenizer):
        labels = tokenizer.labels(ids)  # one question to its process
    else:
        used = tokenizer.vocab_size
        labels = [tokenizer.label(token) if token < used else f"<{token}>" for token in ids]
    return [candidate_text(label) for label in labels]


def _draw(found: EmbeddingSpace, labels: list[str]) -> None:
    chosen = set(found.chosen)
    near = {token for each in found.neighbours for token, _ in each} - chosen
    groups = [
        YOURS if token in chosen else NEIGHBOURS if token in near else OTHERS for token in found.ids
    ]
    figure = embedding_scatter(
        found.places,
        labels,
        groups,
        (OTHERS, YOURS, NEIGHBOURS),
        found.shares,
        palette(st.context.theme.type),
    )
    x, y, z = found.places.T.tolist()
    table = {"token": labels, "group": groups, "x": x, "y": y, "z": z}
    plotly_chart(figure, key="embedding_points", title="Embedding space", table=table)
    st.caption(_caption(found))


def _caption(found: EmbeddingSpace) -> str:
    text = (
        "The three principal components of the token embedding have "
        f"{sum(found.shares):.0%} of its variance, so points that look close may be far apart. "
        "Neighbours are by cosine similarity in all dimensions."
    )
    if len(found.ids) < found.size:
        text += f" {len(found.ids):,} of {found.size:,} tokens are drawn, evenly spaced by ID."
    if found.rows < found.size:
        text += f" The components are computed from {found.rows:,} tokens."
    if len(found.chosen) == MOST_CHOSEN:
        text += f" Only the first {MOST_CHOSEN} distinct tokens of your text are marked."
    return text


def _neighbours(found: EmbeddingSpace, labels: dict[int, str]) -> None:
    rows = [
        {
            "token": labels[token],
            "nearest neighbours (cosine similarity)": ", ".join(
                f"{labels[other]} {fixed(cosine, 2)}" for other, cosine in near
            ),
        }
        for token, near in zip(found.chosen, found.neighbours, strict=True)
    ]
    st.dataframe(rows, hide_index=True, height=min(248, 38 + 35 * len(rows)))
