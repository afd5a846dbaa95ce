"""What is chosen once for all pages: the sentences, the model, its training step and one head."""

from dataclasses import dataclass, fields

from explorer.app.training_steps import TRAINED
from explorer.catalog.folders import own_name

Head = tuple[str, int, int]
"""A part of a model, a layer and a head."""


@dataclass(frozen=True)
class Choice:
    """Everything that is chosen once for all pages: the sentences, the model and one head."""

    text: str
    pair: str
    model: str
    part: str
    layer: int
    head: int
    special: bool = False
    """Whether special tokens that are written in the text are read as such: it is a prompt."""
    training_step: int = TRAINED
    """The step of the training at which the model is shown, where it has snapshots."""

    @property
    def called(self) -> str:
        """What the model is called in a title: its name, and the step where one is chosen."""
        name, step = own_name(self.model), self.training_step
        return name if step == TRAINED else f"{name} at step {step:,}"


FRAME = tuple(each.name for each in fields(Choice))
"""What is chosen once for all pages, by its name in the address."""
