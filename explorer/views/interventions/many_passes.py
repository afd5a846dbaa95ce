"""What the views share that run the model many times: the base, and what is said of it."""

from collections.abc import Hashable

from explorer.analysis.ablation import RecordedPass
from explorer.inference.edited_pass import EditedPass
from explorer.inference.model_inputs import ids_of

NO_HEAD = "This model has no output head, so there is no output to compare."


def recorded_pass(edited: EditedPass, position: int) -> RecordedPass:
    """The base that all the passes branch off from."""
    forward = edited.forward
    inputs = [ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens]
    return RecordedPass(forward.trace, inputs, position, edited.core_edits)


def identity(edited: EditedPass) -> tuple[Hashable, ...]:
    """What distinguishes this pass from others of the same model."""
    return edited.forward.text, edited.forward.pair, edited.applied


def base_words(edited: EditedPass) -> str:
    """Which pass the many passes differ from."""
    return "in the pass with your interventions" if edited.applied else "in the original pass"
