"""The code behind the Generation page: sampling a token, beam search, teacher forcing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.inference.continuation import Prompt
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, model_lines, pass_lines, script
from models.sampling import Sampling

LOAD = "from models import load_checkpoint"


def choice(
    forward: ForwardPass, folder: Path, sampling: Sampling, seed: int, step: int, begun: int
) -> str:
    """Samples the token after `step` tokens, and as many at once from the prompt of `begun`."""
    is_padded = any(token.id == forward.config.pad_id for token in forward.target[:begun])
    prompt = 0 if forward.source or not is_padded else begun
    how = ", ".join(
        f"{name}={value}" for name, value in vars(sampling).items() if value is not None
    )
    name = "source" if forward.source else "ids"
    given = name if forward.source else f"ids[:, :{begun}]"
    end = begun + step
    return script(
        [
            *pass_lines(forward, folder)[:-1],
            *_pass_over("target" if forward.source else "ids", bool(forward.source), prompt),
            f"logits = allowed(seen.output[:, {end - 1}], model.config, first={end == 1})",
            f"sampling = Sampling({how})",
            "probabilities = choose_from(logits, sampling)",
            f"generator = torch.Generator().manual_seed({seed})",
            f"for _ in range({step}):  # skip the draws of the tokens before",
            "    sample(torch.ones_like(probabilities), sampling, generator)",
            "token = int(sample(probabilities, sampling, generator))",
            "print(token, probabilities[0, token], probabilities.topk(5))",
            f"# All tokens up to here at once, where each was sampled with seed {seed}:",
            f"steps = generate(model, {given}, max_length={step + 1}, seed={seed}, {how})",
            "generated = [int(step.ids[0]) for step in steps]",
            "print(generated)",
        ],
        CORE,
        "from models.generation import generate",
        "from models.sampling import Sampling, allowed, choose_from, sample",
    )


def beams(prompt: Prompt, folder: Path, count: int, length: int, alpha: float) -> str:
    """The same search and its texts."""
    name, tokens = ("source", prompt.source) if prompt.source else ("ids", prompt.tokens)
    return script(
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


def forcing(
    prompt: Prompt, folder: Path, target: Sequence[int], given: int, has_first: bool
) -> str:
    """The predictions with the target as input, and the target's probabilities.

    `has_first`: this model must begin with a certain token.
    """
    source = [[token.id for token in prompt.source]]
    return script(
        [
            *model_lines(folder),
            *([f"source = torch.tensor({source})"] if prompt.source else []),
            f"target = torch.tensor({[list(target)]})",
            "inputs = target[:, :-1]",
            *_pass_over("inputs", bool(prompt.source)),
            f"logits = allowed_rows(seen.output[0, {given - 1}:], model.config, {has_first})",
            f"targets = target[0, {given}:]  # the inputs, shifted by one",
            "predicted = logits.argmax(-1)",
            "probabilities = logits.softmax(-1).gather(-1, targets[:, None])[:, 0]",
            "print(predicted, targets, probabilities)",
        ],
        CORE,
        "from models.sampling import allowed_rows",
    )


def _pass_over(name: str, has_source: bool, prompt: int = 0) -> list[str]:
    """Padding in a prompt of this length is masked; a generated padding token is not."""
    given = f"source, {name}" if has_source else name
    which = "target_keep" if has_source else "keep"
    padding = f"keep[:, :{prompt}] = {name}[:, :{prompt}] != model.config.pad_id"
    return [
        f"keep = torch.ones_like({name}, dtype=torch.bool)",
        *([padding] if prompt else []),
        f"seen = trace(model, {given}, {which}=keep)",
    ]
