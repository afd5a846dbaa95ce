"""The lines behind the Decoding page: a choice and its draw, the beams, the target that is fed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.inference.continuation import Start
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, model_lines, pass_lines, pasted
from models.sampling import Sampling

LOAD = "from models import load_checkpoint"


def choice(
    forward: ForwardPass, folder: Path, sampling: Sampling, seed: int, step: int, first: bool
) -> str:
    """What is drawn behind everything that stands there; `step` tokens were written before."""
    prompt = 0 if forward.source else len(forward.tokens) - step
    if all(token.id != forward.config.pad_id for token in forward.tokens[:prompt]):
        prompt = 0
    how = ", ".join(
        f"{name}={value}" for name, value in vars(sampling).items() if value is not None
    )
    return pasted(
        [
            *pass_lines(forward, folder)[:-1],
            *_pass_over("target" if forward.source else "ids", bool(forward.source), prompt),
            f"logits = allowed(seen.output[:, -1], model.config, first={first})",
            f"sampling = Sampling({how})",
            "probabilities = choose_from(logits, sampling)",
            f"generator = torch.Generator().manual_seed({seed})",
            f"for _ in range({step}):  # what the tokens before this one took of its chance",
            "    sample(torch.ones_like(probabilities), sampling, generator)",
            "token = int(sample(probabilities, sampling, generator))",
            "print(token, probabilities[0, token], probabilities.topk(5))",
        ],
        CORE,
        "from models.sampling import Sampling, allowed, choose_from, sample",
    )


def beams(start: Start, folder: Path, count: int, length: int, alpha: float) -> str:
    """The same search, and the texts that it found."""
    name, tokens = ("source", start.source) if start.source else ("ids", start.begun)
    return pasted(
        [
            *model_lines(folder),
            f"{name} = torch.tensor({[[token.id for token in tokens]]})",
            f"how = dict(beams={count}, max_length={length}, alpha={alpha})",
            f"found = beam_search(model, {name}, **how)",
            "for end in found.ends:",
            "    print(found.nodes[end].score, found.path(end))",
        ],
        LOAD,
        "from models.beam_search import beam_search",
    )


def forcing(start: Start, folder: Path, target: Sequence[int], given: int, has_first: bool) -> str:
    """What the model says when it is fed the target, and what it gives the right tokens.

    `has_first`: the first of them is the one that this model must begin with.
    """
    source = [[token.id for token in start.source]]
    return pasted(
        [
            *model_lines(folder),
            *([f"source = torch.tensor({source})"] if start.source else []),
            f"target = torch.tensor({[list(target)]})",
            "fed = target[:, :-1]",
            *_pass_over("fed", bool(start.source)),
            f"logits = allowed_rows(seen.output[0, {given - 1}:], model.config, {has_first})",
            f"right = target[0, {given}:]  # the target, one step on",
            "said = logits.argmax(-1)",
            "chances = logits.softmax(-1).gather(-1, right[:, None])[:, 0]",
            "print(said, right, chances)",
        ],
        CORE,
        "from models.sampling import allowed_rows",
    )


def _pass_over(name: str, has_source: bool, prompt: int = 0) -> list[str]:
    """What was written counts, also where it is the token that fills up; of a prompt it does not.

    `prompt`: the length of one that has such tokens.
    """
    given = f"source, {name}" if has_source else name
    which = "target_keep" if has_source else "keep"
    filler = f"keep[:, :{prompt}] = {name}[:, :{prompt}] != model.config.pad_id"
    return [
        f"keep = torch.ones_like({name}, dtype=torch.bool)",
        *([filler] if prompt else []),
        f"seen = trace(model, {given}, {which}=keep)",
    ]
