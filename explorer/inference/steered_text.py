"""The text that a model writes with and without a direction added to its residual stream."""

from collections.abc import Callable

from explorer.catalog.opened_model import Opened
from explorer.inference.continuation import prompt_of
from explorer.inference.core_edits import core_edit
from explorer.inference.forward_pass import run_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept, size_of
from explorer.interventions.edits import Steer
from models.generation import generate
from models.trace import RecordingTap

MOST_WRITTEN = 24
"""Tokens after the prompt."""


def steered_text(
    opened: Opened,
    prompt: str,
    steer: Steer | None,
    report: Callable[[float], None] = lambda done: None,
) -> str:
    """Greedy decoding after the prompt, up to `MOST_WRITTEN` tokens or an end; kept.

    The direction is added at every position of the prompt and at every generated token.
    ForwardPassError for a model that does not generate, NotApplicableError where there is no
    such direction. A cached step costs the pass of one token.
    """

    def write() -> str:
        begun = prompt_of(opened, prompt)
        edits = [] if steer is None else [core_edit(opened, run_text(opened, prompt), steer)]
        most = min(MOST_WRITTEN, begun.room)
        ids = []
        steps = generate(
            opened.model,
            ids_of([begun.source or begun.tokens]),
            max_length=most,
            greedy=True,
            tap=RecordingTap((), edits),
        )
        for step in steps:
            ids.append(int(step.ids[0]))
            report(len(ids) / most)
        return opened.tokenizer.decode(ids)

    return kept(opened, ("steered text", prompt, steer), write, size_of)
