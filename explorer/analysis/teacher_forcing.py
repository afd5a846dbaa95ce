"""Teacher forcing and free running: the decoder is fed the target, or its own output.

Source of teacher forcing: A Learning Algorithm for Continually Running Fully Recurrent
Neural Networks (Williams and Zipser 1989).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.inference.continuation import allowed_rows
from models.generation import generate
from models.masking import keep_of
from models.model import Transformer
from models.transformer import evaluating


@dataclass(frozen=True, eq=False)
class TeacherForcing:
    """One row per step: the decoder's inputs, its targets (the inputs shifted by one), its outputs.

    With teacher forcing, `predicted` is the likeliest token, and `probabilities` and `nats`
    (steps,) are those of the target. `free_inputs` and `generated` are of free running, which
    stops early when the model ends the text.
    """

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    predicted: tuple[int, ...]
    probabilities: Tensor
    nats: Tensor
    free_inputs: tuple[int, ...]
    generated: tuple[int, ...]

    @property
    def diverges_at(self) -> int | None:
        """The first step at which the generated token is not the target, if there is one."""
        steps = range(len(self.targets))
        return next(
            (at for at in steps if self.generated[at : at + 1] != self.targets[at : at + 1]), None
        )


def teacher_forcing(
    model: Transformer, source: Tensor | None, target: Tensor, prompt_length: int
) -> TeacherForcing:
    """Both ways of decoding a target (tokens,) whose first `prompt_length` tokens are the prompt.

    `source` (1, s) goes to the encoder, and then the start token alone is the prompt; None for a
    decoder. Cost: one pass with the target, and one cached step per generated token. ValueError
    if nothing is left to predict.
    """
    most = len(target) - 1 if source is None else 1
    if not 1 <= prompt_length <= most:
        raise ValueError(f"The prompt may have 1 to {most} tokens, not {prompt_length}.")
    memory = memory_keep = None
    config = model.config
    with evaluating(model):
        if source is not None:
            memory_keep = keep_of(source, config.pad_id)
            memory = model.encode(source, memory_keep)
        inputs = target[None, :-1]
        keep = torch.ones_like(inputs, dtype=torch.bool)
        positions = slice(prompt_length - 1, None)
        logits = model.decode(inputs, memory, memory_keep, keep, read_at=positions)[0].float()
        logits = allowed_rows(logits, config, first=prompt_length == 1)
    start = target[None, :prompt_length] if source is None else source
    keep_all = torch.ones_like(start, dtype=torch.bool) if source is None else None
    targets = target[prompt_length:]
    steps = generate(model, start, keep=keep_all, max_length=len(targets), greedy=True)
    generated = [int(step.ids) for step in steps]
    nats = -logits.log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    return TeacherForcing(
        inputs=tuple(target[prompt_length - 1 : -1].tolist()),
        targets=tuple(targets.tolist()),
        predicted=tuple(logits.argmax(-1).tolist()),
        probabilities=(-nats).exp(),
        nats=nats,
        free_inputs=(int(target[prompt_length - 1]), *generated[:-1]),
        generated=tuple(generated),
    )
