"""Teacher forcing and free running: the same model fed the target, or its own output.

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

    `predicted` is the likeliest token when the target is fed, `probabilities` and `nats`
    (steps,) are the target's then. `free_inputs` and `generated` belong to free running,
    which ends early when it ends the text.
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
        """The first step at which the generated token is not the target; None if there is none."""
        steps = range(len(self.targets))
        return next(
            (at for at in steps if self.generated[at : at + 1] != self.targets[at : at + 1]), None
        )


def teacher_forcing(
    model: Transformer, source: Tensor | None, target: Tensor, given: int
) -> TeacherForcing:
    """Both ways of decoding a target (tokens,) whose first `given` tokens are the prompt.

    `source` (1, s) goes to the encoder, and the start token alone is given then; None for a
    decoder. Cost: one pass with the target, and one cached step per generated token. ValueError
    if nothing is left to predict.
    """
    most = len(target) - 1 if source is None else 1
    if not 1 <= given <= most:
        raise ValueError(f"Of {len(target)} tokens 1 to {most} may be given, not {given}.")
    memory = memory_keep = None
    config = model.config
    with evaluating(model):
        if source is not None:
            memory_keep = keep_of(source, config.pad_id)
            memory = model.encode(source, memory_keep)
        inputs = target[None, :-1]
        keep = torch.ones_like(inputs, dtype=torch.bool)
        positions = slice(given - 1, None)
        logits = model.decode(inputs, memory, memory_keep, keep, read_at=positions)[0].float()
        logits = allowed_rows(logits, config, first=given == 1)
    start = target[None, :given] if source is None else source
    all_kept = torch.ones_like(start, dtype=torch.bool) if source is None else None
    steps = generate(model, start, keep=all_kept, max_length=len(target) - given, greedy=True)
    generated = [int(step.ids) for step in steps]
    targets = target[given:]
    nats = -logits.log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    last_given = int(target[given - 1])
    return TeacherForcing(
        inputs=tuple(target[given - 1 : -1].tolist()),
        targets=tuple(targets.tolist()),
        predicted=tuple(logits.argmax(-1).tolist()),
        probabilities=(-nats).exp(),
        nats=nats,
        free_inputs=(last_given, *generated[:-1]),
        generated=tuple(generated),
    )
