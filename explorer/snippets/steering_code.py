"""The lines that steer a model: the direction, the metric over strengths, the text."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.circuits.steering import STRENGTHS
from explorer.analysis.circuits.text_pairs import Question
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.steered_text import MOST_WRITTEN
from explorer.interventions.edits import Steer
from explorer.snippets.pass_code import OPENED, opened_lines, script


def steering_lines(
    forward: ForwardPass, folder: Path, question: Question, steer: Steer, prompt: str
) -> str:
    """The curve of the first pair's clean text, and what is written after `prompt`, if anything.

    `forward` is the pass of that text; an empty prompt leaves the writing out.
    """
    pair = question.pairs[0]
    site = f"{steer.part.split('.')[0]}.{steer.layer}.resid_post"
    given = [name for name in ("source", "target") if getattr(forward, name)]
    rows = ", ".join(f"{name}.expand(len(strengths), -1)" for name in given)
    has_segments = forward.config.n_segments > 0
    segments = ", segments=segments" if has_segments else ""
    at = f"[:, {pair.place}]" if forward.config.head.endswith("language-model") else ""
    lines = [
        *opened_lines(forward, folder),
        f"steer = {steer!r}",
        "direction = steering_direction(opened, steer)",
        "print(direction.norm())",
        f"strengths = torch.tensor({list(STRENGTHS)})",
        *(f"{name} = ids_of([forward.{name}])" for name in given),
        *(["segments = segments_of(opened, [forward.tokens])"] if has_segments else []),
        f"edit = Add({site!r}, strengths[:, None, None] * direction)",
        f"logits = trace(opened.model, {rows}{segments}, sites=(), edits=[edit]).output{at}",
        f"pair = token_pair(opened, {pair.texts!r}, {question.metric!r})",
        "curve = pair.outcome(logits)",
        "print(curve)  # the metric of the clean text at every strength",
    ]
    imports = [
        *OPENED,
        "from explorer.analysis.circuits.text_pairs import TextPair, token_pair",
        "from explorer.inference.core_edits import steering_direction",
        f"from explorer.inference.model_inputs import ids_of{', segments_of' * has_segments}",
        "from explorer.interventions.edits import Steer",
        "from models import trace",
        "from models.interventions import Add",
    ]
    if prompt:
        lines += [
            f"begun = prompt_of(opened, {prompt!r})",
            "ids = ids_of([begun.source or begun.tokens])",
            f"tap = RecordingTap((), [Add({site!r}, direction, {steer.strength!r})])",
            f"most = min({MOST_WRITTEN}, begun.room)",
            "steps = generate(opened.model, ids, max_length=most, greedy=True, tap=tap)",
            "written = opened.tokenizer.decode([int(step.ids[0]) for step in steps])",
            "print(written)",
        ]
        imports += [
            "from explorer.inference.continuation import prompt_of",
            "from models.generation import generate",
            "from models.trace import RecordingTap",
        ]
    return script(lines, *imports)
