"""What is chosen on the Checkpoints page: the view, the tensor; both live in the address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from torch import Tensor

from explorer.analysis.weight_statistics import IN_A_LAYER
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.catalog.entries import Opened

VIEWS = ("Ledger", "Weights", "Norms", "Spectra", "Heads", "Doctor")


def choose_view() -> str:
    """Which side of the model is shown; only that one is computed."""
    return pick("View", "show", VIEWS, VIEWS[0])


def pick(label: str, key: str, options: Sequence[str], default: str) -> str:
    """One of a few, in one line without its name."""
    return one_of(label, key, options, default, label_visibility="collapsed")


def choose_tensor(opened: Opened, *, matrices: bool = False) -> tuple[str, Tensor]:
    """A tensor by its name in a layer; which layer, of which stack, the sidebar says.

    So a click in the sidebar goes to the same tensor of the next layer.
    """
    at = page_context().choice
    places, default = _offered(opened, matrices)
    name = one_of(
        f"Tensor: {at.part.split('.')[0]} layer {at.layer}, or outside the layers",
        "tensor",
        list(places),
        default,
        as_list=True,
        help="The layer and the kind of attention are chosen in the sidebar.",
    )
    return places[name]


def tensor_chosen(opened: Opened, *, matrices: bool = False) -> str:
    """The whole name of the tensor that is chosen, once `choose_tensor` is drawn."""
    places, default = _offered(opened, matrices)
    return places[st.session_state.get("tensor", default)][0]


def _offered(opened: Opened, matrices: bool) -> tuple[dict[str, tuple[str, Tensor]], str]:
    """The tensors one may choose from, by the names that stand in the list, and the first."""
    at = page_context().choice
    stack, attention = at.part.split(".")
    places: dict[str, tuple[str, Tensor]] = {}
    for name, parameter in opened.model.named_parameters():
        inside = IN_A_LAYER.fullmatch(name)
        if matrices and parameter.dim() != 2:
            continue
        if inside is None:
            places[name] = name, parameter
        elif inside["stack"] == stack and int(inside["layer"]) == at.layer:
            places[inside["part"]] = name, parameter
    default = f"{attention}.q_proj.weight"
    return places, default if default in places else next(iter(places))
