"""What the page Circuits shows of parts and edges, made again by one edited pass for each."""

from dataclasses import replace

from torch import Tensor

from explorer.runs.run import Run
from models import trace
from models.gradients import gradients
from models.interventions import Replace
from tests.browser.truth.core import tokenizer_in
from tests.browser.truth.screen import Claim, grid, said
from tests.browser.truth.steering import ANSWERS, ASKS, CLEAN, CORRUPTED
from tests.browser.visiting import Visitor

N = r"(−?[\d.,]+)"
ASKS_PARTS, ASKS_CIRCUIT = (
    ASKS.replace("Steering", view) + "&attributed_by=EAP" for view in ("Heads", "Circuit")
)


def difference(logits: Tensor) -> Tensor:
    answer, against = (tokenizer_in(CLEAN.folder).encode(each)[-1].id for each in ANSWERS)
    return logits[0, -1, answer] - logits[0, -1, against]


def parts(visitor: Visitor) -> list[Claim]:
    """Estimate and exact value of all that is listed, and all of the difference."""
    clean, corrupted = (float(difference(case.seen.output)) for case in (CLEAN, CORRUPTED))
    (whole,) = said(visitor, rf"All of it is {N}\. Positive")
    found = [Claim("the whole difference", whole, clean - corrupted)]
    shown = grid(visitor, "part", "exact")
    assert len(shown) == len(_sites())
    for name, estimate, exact in shown:
        site, head = _sites()[name]
        found += [
            Claim(f"{name}, estimated", estimate, _estimate(site, head)),
            Claim(f"{name}, exact", exact, clean - float(difference(_patched(site, head)))),
        ]
    return found


def _sites() -> dict[str, tuple[str, int | None]]:
    """Where every part of the model writes, and which head it is."""
    config = CLEAN.model.config
    found: dict[str, tuple[str, int | None]] = {"embedding": ("decoder.0.resid_pre", None)}
    for layer in range(config.n_layers):
        for head in range(config.n_heads):
            found[f"{layer}.{head}"] = (f"decoder.{layer}.self_attn.head_out", head)
        if config.d_ff:
            found[f"MLP {layer}"] = (f"decoder.{layer}.mlp.out", None)
    return found


def _estimate(site: str, head: int | None) -> float:
    seen = gradients(CLEAN.model, CLEAN.ids, of=difference, sites=[site])
    product = (seen.values[site] - CORRUPTED.seen[site]) * seen.gradients[site]
    return float((product if head is None else product[:, head]).sum())


def _patched(site: str, head: int | None) -> Tensor:
    """The output for the clean text where a part wrote what it did for the corrupted one."""
    value = CORRUPTED.seen[site]
    if head is not None:
        value = CLEAN.seen[site].clone()
        value[:, head] = CORRUPTED.seen[site][:, head]
    return trace(CLEAN.model, CLEAN.ids, edits=[Replace(site, value)]).output


def circuit(visitor: Visitor) -> list[Claim]:
    """The exact value of every edge that is listed in sight."""
    clean = float(difference(CLEAN.seen.output))
    said(visitor, r"About (\d+) of \d+ edges")
    shown = grid(visitor, "edge", "exact")
    assert shown
    return [
        Claim(name, exact, clean - float(difference(_without(name)))) for name, _, exact in shown
    ]


def _without(edge: str) -> Tensor:
    """The output where the reader of one edge reads what its writer wrote for the other text."""
    writer, _, reader = edge.partition(" → ")
    site, head = _sites()[writer]
    lost = CORRUPTED.seen[site] - CLEAN.seen[site]
    if head is not None:
        attention = CLEAN.model.decoder.blocks[int(site.split(".")[1])].self_attn
        width = attention.d_head
        lost = lost[:, head] @ attention.o_proj.weight[:, head * width :][:, :width].mT
    layers = CLEAN.model.config.n_layers
    if reader == "logits":
        return _read_less(f"decoder.{layers - 1}.resid_post", None, lost)
    if reader.startswith("MLP"):
        return _read_less(f"decoder.{reader.split()[1]}.mlp.input", None, lost)
    (layer, target), name = reader.split()[0].split("."), reader.split()[1]
    return _read_less(f"decoder.{layer}.self_attn.{name}_input", int(target), lost)


def _read_less(site: str, head: int | None, lost: Tensor) -> Tensor:
    value = CLEAN.seen[site].clone()
    value[:, slice(None) if head is None else head] += lost
    return trace(CLEAN.model, CLEAN.ids, edits=[Replace(site, value)]).output


def asks_run(run: Run) -> str:
    return ASKS.replace("model=induction", f"model={run.name}").replace("Steering", "Over+training")


def over_training(visitor: Visitor, run: Run) -> list[Claim]:
    """The metric of both texts with the weights of one snapshot."""
    clean, corrupted = said(visitor, rf"Metric: {N} for the clean text, {N} for the corrupted")
    (step,) = said(visitor, r"Strongest edges at step ([\d,]+)")
    folder = dict(run.snapshots())[int(step.replace(",", ""))]
    found = []
    for case, shown in ((CLEAN, clean), (CORRUPTED, corrupted)):
        output = replace(case, folder=folder).seen.output
        found.append(Claim(case.text, shown, float(difference(output))))
    assert grid(visitor, "edge", "estimate")
    return found
