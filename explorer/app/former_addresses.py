"""What links of earlier versions say, and what says the same now."""

from __future__ import annotations

FORMER_PAGES = {
    "overview": "overview",
    "start": "overview",
    "learning": "tokenizer_training",
    "stages": "head_steps",
    "pairs": "query_key",
    "walk": "forward_pass",
    "lens": "logit_lens",
    "writing": "generation",
    "generate": "generation",
    "decoding": "generation",
    "edits": "interventions",
    "train": "training",
}
"""What a link of an earlier version may name: it opens the same page. The first is at the root."""
GENERATE_FIRST = "generate"
"""Asked for as branches: as many tokens are generated first as the link says."""
_GREEDY = {"temperature": "0.0", "branches": GENERATE_FIRST, "written": "0"}
FORMER_CHOICES = {"writing": _GREEDY, "generate": _GREEDY}
"""What such a link meant where it does not say otherwise."""

FORMER_METRICS = {
    "Entropy share": "Normalized entropy",
    "Largest": "Maximum weight",
    "Distance": "Mean distance",
    "Itself": "Current-token score",
    "Previous": "Previous-token score",
    "First": "First-token score",
    "Special": "Special-token score",
    "Induction": "Induction score",
    "Duplicate": "Duplicate-token score",
    "Diagonal": "Diagonal score",
    "Anti-diagonal": "Anti-diagonal score",
}
"""What the metrics of a head were called in an earlier version."""
FORMER_VALUES: dict[str, dict[str, str]] = {
    "weighting": {
        "Plain": "None",
        "Value length": "Value norm",
    },
    "colours": {
        "Picture": "Matrix",
    },
    "side": {
        "Likeness": "Similarity",
    },
    "arranged": {
        "By likeness": "By similarity",
    },
    "best_is": {
        "Highest": "Highest first",
        "Lowest": "Lowest first",
    },
    "look": {
        "Maps": "Attention maps",
    },
    "patch_what": {
        "Output of the head": "Head output",
        "Stream after the layer": "Residual stream after the layer",
    },
    "heads_are": {
        "Switched off": "Ablated",
    },
    "number": {
        "KL": "KL divergence",
        "Change of the likeliest logit": "Change in the top logit",
    },
    "click": {
        "Opens the head": "Selects the head",
    },
    "mask_how": {
        "A preset": "Preset",
        "Hide a key": "One key",
    },
    "with": {
        "Your edits": "Your interventions",
    },
    "lab": {
        "The scheme": "Scheme",
        "Another order": "Permutation",
        "Longer than trained": "Length extrapolation",
        "A doubled exponent": "Doubled exponent",
    },
    "width": {
        "The document's width": "Width of the lecture handout",
    },
    "order_of": {
        "Backwards": "Reversed",
        "My own order": "Custom order",
    },
    "learn_from": {
        "Words of your own": "Your own text",
        "A file of your own": "A text file",
    },
    "beside": {
        "Learnt here: Byte-level BPE": "Trained here: Byte-level BPE",
        "Learnt here: WordPiece": "Trained here: WordPiece",
        "Learnt here: Unigram": "Trained here: Unigram",
    },
    "room": {
        "Find it": "Find the mistake",
        "The systems": "Systems",
    },
    "exhibit": {
        "4 · Writing that never appends": "4 · Generation that never appends",
        "11 · A count that is not the model's": "11 · Wrong parameter count",
        "12 · Learning noise, measured on itself": (
            "12 · Random labels, measured on the training batch"
        ),
    },
    "instrument": {
        "A map": "Attention map",
        "An empty row": "Fully masked row",
        "What leaves the model": "Model output",
        "Another target": "Replaced target",
        "Filler": "Padding",
        "Writing": "Generation",
        "The stream": "Residual stream",
        "The scale": "Score scale",
    },
    "show": {
        "Ledger": "Parameters",
        "Spectra": "Singular values",
        "Doctor": "Diagnostics",
    },
    "ledger": {
        "the chosen model": "Chosen model",
    },
    "system": {
        "paper": "repository README",
    },
    **dict.fromkeys(("metric", "statistic"), FORMER_METRICS),
    "against": {"No edit": "Original pass"}
    | {f"Edit {n}": f"After intervention {n}" for n in range(1, 60)},
}
"""By parameter: what an option was called in an earlier version, and what it is called now."""
