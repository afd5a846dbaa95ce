"""Scripts for the overview, tokens, query and key, masks and the logit lens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.analysis.output_change import has_words, last_streams
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.heads_code import Head, weight_lines
from explorer.snippets.pass_code import CORE, hint, how_read, pass_lines, path, script

Place = tuple[str, int, int]
"""The part, the layer and the head that are chosen."""


def tokens_script(forward: ForwardPass, folder: Path) -> str:
    """The tokens of a text, by the tokenizer that lies with the model."""
    both = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
    lines = [
        f"folder = Path({path(folder)!r}){hint(folder)}",
        f"opened = opened_from(folder, folder.name{how_read(forward.is_prompt)})",
        f"tokens = opened.tokenizer.encode({both})",
        "ids = [token.id for token in tokens]",
        "print([(token.label, token.id) for token in tokens])",
    ]
    imports = [
        "from pathlib import Path",
        "",
        "from explorer.catalog.opened_model import opened_from",
        "",
    ]
    return "\n".join([*imports, *lines]) + "\n"


def answer_script(forward: ForwardPass, folder: Path, at: Place, place: int) -> str:
    """The weights of the chosen head, and the output of the model at this position."""
    logits = f"seen.output[0, {place}]" if has_words(forward.config) else "seen.output[0]"
    ends = ["print(weights)  # a row per query, a column per key"]
    if forward.answer.guesses:
        ends += [
            f"probabilities = {logits}.softmax(-1)",
            "print(probabilities.topk(min(8, len(probabilities))))",
        ]
    elif forward.written:
        ends += ["written = seen.output[0].argmax(-1)", "print(written)  # the answer as token IDs"]
    return script([*weight_lines(Head(forward, folder, *at), "weights"), *ends], CORE)


def query_key_script(forward: ForwardPass, folder: Path, at: Place, query: int, key: int) -> str:
    """From one query and one key to what the head adds to the residual stream."""
    part, layer, head = at
    here, config = site(part, layer), forward.config
    group = config.kv_head(head)
    width = config.head_width
    stack, attention = part.split(".")
    return script(
        [
            *pass_lines(forward, folder),
            f'q = seen["{here}.q"][0, {head}, {query}]',
            f'k = seen["{here}.k"][0, {group}, {key}]',
            "products = q * k",
            f'score = seen.scores("{here}", head={head})[0, {query}, {key}]',
            f'weights = seen.weights("{here}", head={head})[0, {query}]',
            f"print(products.sum(), score, weights[{key}])",
            "",
            f'values = seen["{here}.v"][0, {group}]',
            f"attention = model.{stack}.blocks[{layer}].{attention}",
            "w_o = attention.o_proj.weight.detach()",
            f"to_stream = w_o[:, {head * width} : {(head + 1) * width}]",
            "written = to_stream @ (weights @ values)",
            f"for_this_key = to_stream @ (weights[{key}] * values[{key}])",
            "print(written, for_this_key)",
        ],
        CORE,
    )


def logit_lens_script(forward: ForwardPass, folder: Path, place: int, option: int) -> str:
    """The logit lens after every layer, and the direct attribution of one logit."""
    stack, layers = last_streams(forward.config)
    at = f"[0, {place}]" if has_words(forward.config) else "[0]"
    typed = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
    first, _, *rest = pass_lines(forward, folder)
    return script(
        [
            first,
            f"opened = opened_from(Path(folder), Path(folder).name{how_read(forward.is_prompt)})",
            "model = opened.model",
            *rest,
            f'streams = [seen["{stack}.0.resid_pre"]]',
            f'streams += [seen[f"{stack}.{{layer}}.resid_post"] for layer in range({layers})]',
            "with torch.no_grad():",
            "    logits = [model.read(model.last_stack.norm(stream)) for stream in streams]",
            f"logits = torch.stack([found{at} for found in logits])",
            "print(logits.softmax(-1).topk(min(5, logits.shape[-1])))  # a row per stream",
            "",
            f"found = contributions(run_text(opened, {typed}), {place}, {option})",
            "print(found.heads, found.feed_forward, found.embedding, found.constant)",
            "print(found.total, found.logit)",
        ],
        "from pathlib import Path",
        "from models import trace",
        "from explorer.catalog.opened_model import opened_from",
        "from explorer.inference.forward_pass import run_text",
        "from explorer.analysis.logit_attribution import contributions",
    )


def student_mask_script() -> str:
    """The causal mask of the example “I am a student”."""
    return script(
        ["mask = causal_mask(5)[0, 0]", "print(mask)  # True = may attend"],
        "from models.masking import causal_mask",
    )


def masks_script(batch: Sequence[ForwardPass], folder: Path, at: Place) -> str:
    """The mask of the last text of a batch, and one head from its scores to its weights."""
    part, layer, head = at
    here = site(part, layer)
    heads = f"slice({head}, {head + 1})"
    row = len(batch) - 1
    forward = batch[row]
    added = []
    if forward.bias(part, layer, head) is not None:
        added = [
            f'bias = seen.bias("{here}", {heads}).expand({row + 1}, -1, -1, -1)',
            f"scores = scores + bias[{row}, 0]",
        ]
    return script(
        [
            *pass_lines(batch, folder),
            f'scores = seen.scores("{here}", head={head})[{row}]',
            *added,
            f'mask = seen.mask("{here}").expand({len(batch)}, -1, *scores.shape)[{row}, 0]',
            f'weights = seen.weights("{here}", head={head})[{row}]',
            "print(scores, mask, weights)",
        ],
        CORE,
    )
