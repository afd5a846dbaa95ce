"""Scripts for one head's card, and for the lines of a text that excite it."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.circuits.text_pairs import TokenPair
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import OPENED, opened_lines, script

SHORT = 2_000
"""Characters of a text that stands in the lines themselves."""


def head_card_lines(
    forward: ForwardPass, folder: Path, pair: TokenPair, layer: int, head: int, *, copies: bool
) -> str:
    """Every number of the card. With `copies` its output is tokens, which the head can copy."""
    part, place = f"{forward.config.stacks[0]}.self_attn", pair.place
    has_words = forward.config.head.endswith("language-model")
    return script(
        [
            *opened_lines(forward, folder),
            f"model, layer, head, place = opened.model, {layer}, {head}, {place}",
            "every = standard_scores(opened)",
            "scores = {name: float(each[layer, head]) for name, each in every.items()}",
            "moved = name_moving(opened)  # of every head, or None",
            f"parts = [contributions(forward, place, option) for option in {_options(pair)}]",
            f'direct = [float(each.heads["{part}"][layer, head]) for each in parts]',
            "qk, ov = spectra(head_weights(model, layer, head))",
            "composed = composition(model, layer, head) / unrelated(model.config.d_model)",
            *(["copied = copying(model, layer, head)"] if copies else []),
            *(
                [
                    "written = source_writes(forward, layer, head)",
                    "logits = direct_logits(forward, layer, place, written)  # a row per token",
                    "raised = logits - logits.mean(-1, keepdim=True)",
                ]
                if has_words
                else []
            ),
            "print(scores, direct, qk.values, ov.values, composed.shape)",
            *(["print(copied.score, copied.own_in_top)"] if copies else []),
        ],
        *OPENED,
        "from explorer.analysis.head_composition import composition, unrelated",
        "from explorer.analysis.head_spectra import spectra",
        "from explorer.analysis.head_weights import head_weights",
        "from explorer.analysis.logit_attribution import contributions",
        "from explorer.analysis.name_moving import name_moving",
        "from explorer.analysis.standard_prompts import standard_scores",
        *(["from explorer.analysis.head_copying import copying"] if copies else []),
        *(
            ["from explorer.analysis.direct_logits import direct_logits, source_writes"]
            if has_words
            else []
        ),
    )


def evidence_lines(
    forward: ForwardPass,
    folder: Path,
    source: str,
    lines: tuple[str, ...],
    by: str,
    head: tuple[int, int],
) -> str:
    """The lines with the most of one head; `source` names a text of the app, or is empty."""
    imports = ["from explorer.analysis.circuits.exciting_lines import best_lines, tokenized"]
    if source:
        imports.append("from explorer.analysis.circuits.built_in_lines import built_in_lines")
        text = [f"lines = built_in_lines(opened, {source!r})"]
    elif sum(map(len, lines)) <= SHORT:
        text = [f"lines = {lines!r}"]
    else:
        imports.append("from explorer.views.circuits.line_source import lines_in")
        text = ['lines = lines_in(Path("lines.txt").read_text())  # put the way to your text there']
    layer, number = head
    return script(
        [
            *opened_lines(forward, folder),
            *text,
            "read, config = tokenized(opened, lines), opened.config",
            "found = LineActivations.empty(len(lines), config.n_layers, config.n_heads)",
            "for some, tokens in activations_by_batch(opened, read.rows):",
            "    found.put(some, tokens)",
            f"best = best_lines(found, {by!r}, {layer}, {number}, 10)",
            "for each in best:",
            "    print(each.value, lines[each.line])",
        ],
        *OPENED,
        "from explorer.analysis.line_activations import LineActivations, activations_by_batch",
        *imports,
    )


def _options(pair: TokenPair) -> str:
    return f"({pair.answer}, {pair.against})"
