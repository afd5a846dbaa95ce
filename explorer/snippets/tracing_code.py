"""The lines that patch one value after another, and single edges, each in a pass of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.analysis.causal_tracing import Tracing
from explorer.analysis.circuits.text_pairs import Question, TokenPair
from explorer.analysis.wiring import plain_wiring
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import hint, how_read, path, script

PAIRED = (
    "from pathlib import Path",
    "from explorer.catalog.opened_model import opened_from",
    "from explorer.analysis.circuits.text_pairs import TextPair, token_pair",
    "from explorer.inference.model_inputs import ids_of",
    "from models import trace",
)


def pair_lines(
    forward: ForwardPass, folder: Path, question: Question, pair: TokenPair
) -> list[str]:
    """After these lines `pair` is this pair of the question, `clean` and `corrupted` its IDs.

    `measured(output)` is the metric of a model's output.
    """
    is_read_at_one = forward.config.head.endswith("language-model")
    at = "[:, pair.place]" if is_read_at_one else ""
    return [
        f"folder = Path({path(folder)!r}){hint(folder)}",
        f"opened = opened_from(folder, folder.name{how_read(forward.is_prompt)})",
        f"pair = token_pair(opened, {pair.texts!r}, {question.metric!r})",
        "clean, corrupted = ids_of([pair.clean]), ids_of([pair.corrupted])",
        "",
        "def measured(text, edits):",
        "    output = trace(opened.model, text, sites=(), edits=edits).output",
        f"    return float(pair.outcome(output{at}))",
        "",
    ]


def tracing_lines(
    forward: ForwardPass, folder: Path, question: Question, pair: TokenPair, tracing: Tracing
) -> str:
    """The grid of one pair, one pass for each cell: `share` and `change`."""
    passed, other = "corrupted", "clean"
    if not tracing.denoising:
        passed, other = other, passed
    stack = tracing.part.split(".")[0]
    site = f'f"{stack}.{{layer}}.{tracing.site}"'
    lines = [
        *pair_lines(forward, folder, question, pair),
        f"sites = [{site} for layer in range({tracing.layers})]",
        f"values = trace(opened.model, {other}, sites=sites)",
        "",
        "def patched(site, i):",
        f"    return measured({passed}, [ReplaceAt(site, i, values[site][0, i])])",
        "",
        f"tokens = range({tracing.tokens})",
        "grid = torch.tensor([[patched(site, i) for site in sites] for i in tokens])",
        f"change = {_change(tracing.denoising)}",
        "share = change / (pair.clean_value - pair.corrupted_value)",
        "print(share)  # a row for each token, a column for each layer",
    ]
    return script(
        lines,
        *PAIRED,
        "from models.interventions import ReplaceAt",
        comments=one_of_many(question),
    )


def _change(denoising: bool) -> str:
    return "grid - pair.corrupted_value" if denoising else "pair.clean_value - grid"


def one_of_many(question: Question) -> Sequence[str]:
    """What is said above lines of one pair where the page has several."""
    count = len(question.pairs)
    return (
        [f"# One of {count} pairs: the page shows the mean over those of one length."]
        if count > 1
        else []
    )


def path_lines(
    forward: ForwardPass,
    folder: Path,
    question: Question,
    pair: TokenPair,
    ends: tuple[int, int, str],
    *,
    is_sender: bool,
) -> str:
    """The paths of one pair from this head (layer, head), or into its input q, k or v."""
    wiring, (layer, head, reads) = plain_wiring(forward.config), ends
    stack, heads = wiring.stack, f"range({wiring.heads})"
    first, last = (layer + 1, wiring.layers) if is_sender else (0, layer)
    sender = (f"{layer}", f"{head}") if is_sender else ("other", "i")
    receiver = ("other", "i") if is_sender else (f"{layer}", f"{head}")
    lines = [
        *pair_lines(forward, folder, question, pair),
        "def written(text, layer):  # what each head adds to the residual stream, (h, t, d)",
        f'    site = f"{stack}.{{layer}}.self_attn.head_out"',
        f"    attention = opened.model.{stack}.blocks[layer].self_attn",
        "    return through_output(attention, trace(opened.model, text, sites=[site])[site][0])",
        "",
        "def path(layer, head, to_layer, to_head):",
        "    lost = written(corrupted, layer)[head] - written(clean, layer)[head]",
        f'    site = f"{stack}.{{to_layer}}.self_attn.{reads}_input"',
        "    edit = AddByRow(site, lost[None], (to_head,))",
        "    return measured(clean, []) - measured(clean, [edit])",
        "",
        f"layers, heads = range({first}, {last}), {heads}",
        f"rows = [[path({', '.join((*sender, *receiver))}) for i in heads] for other in layers]",
        "paths = torch.tensor(rows)",
        "print(paths)  # a row for each layer, a column for each head",
    ]
    return script(
        lines,
        *PAIRED,
        "from explorer.analysis.attribution_patching import through_output",
        "from explorer.analysis.batch_edits import AddByRow",
        comments=one_of_many(question),
    )
