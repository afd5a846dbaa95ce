"""What the views Head card and Text as evidence of the page Circuits show of one head."""

from urllib.parse import quote_plus

import torch
from torch import Tensor

from explorer.catalog.opened_model import opened_from
from explorer.circuits.built_in_lines import OF_TASK, built_in_lines
from models import trace
from tests.browser.truth.core import tokenizer_in
from tests.browser.truth.screen import Claim, cells, grid, said
from tests.browser.truth.steering import ANSWERS, CLEAN, CORRUPTED, NUMBER
from tests.browser.visiting import Visitor

ASKS = (
    f"{CLEAN.address}&corrupted={CORRUPTED.text}&answer_token={ANSWERS[0]}"
    f"&against_token={ANSWERS[1]}&circuit_view="
)
ASKS_CARD = f"{ASKS}{quote_plus('Head card')}&composed_by=K"
ASKS_EVIDENCE = f"{ASKS}{quote_plus('Text as evidence')}&lines_from={quote_plus(OF_TASK)}"


def card(visitor: Visitor) -> list[Claim]:
    """What it adds to both answers, and the K-composition with every head of the first layer."""
    answers = (tokenizer_in(CLEAN.folder).encode(letter)[-1].id for letter in ANSWERS)
    direct = [float(_direct()[answer]) for answer in answers]
    shown = said(visitor, rf"Direct contribution: \+?({NUMBER}) to “.”, \+?({NUMBER}) to “.”")
    made = [Claim(f"direct {at}", *each) for at, each in enumerate(zip(shown, direct, strict=True))]
    scores = torch.tensor([[_composed(head)] for head in range(CLEAN.model.config.n_heads)])
    visitor.drawn("composition")
    return made + cells(visitor, "composition", scores, (0, 0), (1, 0))


def evidence(visitor: Visitor) -> list[Claim]:
    """The line with the largest norm of what the head writes at one of its tokens."""
    lines = built_in_lines(opened_from(CLEAN.folder, CLEAN.folder.name), OF_TASK)
    largest = [_largest_norm(line) for line in lines]
    best = max(range(len(lines)), key=largest.__getitem__)
    (shown, _, line, text, *_), *_ = grid(visitor, lines[best])
    assert text == lines[best]
    return [Claim("norm", shown, largest[best]), Claim("line", line, best + 1)]


def _columns(layer: int, head: int) -> Tensor:
    attention = CLEAN.model.last_stack.blocks[layer].self_attn
    w = attention.d_head
    columns: Tensor = attention.o_proj.weight[:, head * w : (head + 1) * w].double().detach()
    return columns


def _rows(layer: int, head: int, proj: str) -> Tensor:
    """The rows of a projection behind the norm of its layer, without the norm's scale."""
    block = CLEAN.model.last_stack.blocks[layer]
    w = block.self_attn.d_head
    weight = getattr(block.self_attn, proj).weight[head * w : (head + 1) * w]
    d = weight.shape[1]
    centring = torch.eye(d).double() - 1 / d
    found: Tensor = (weight * block.self_residual.norm.weight).double().detach() @ centring
    return found


def _composed(head: int) -> float:
    """In units of that of unrelated heads."""
    at = CLEAN.layer, CLEAN.head
    qk = _rows(*at, "q_proj").T @ _rows(*at, "k_proj")
    ov = _columns(0, head) @ _rows(0, head, "v_proj")
    return float((qk @ ov).norm() / qk.norm() / ov.norm()) * CLEAN.model.config.d_model**0.5


def _direct() -> Tensor:
    """What the head writes at the last token, through the last norm with its scale frozen."""
    stack, head_out = CLEAN.model.last_stack, CLEAN.seen[f"{CLEAN.site}.head_out"]
    written = _columns(CLEAN.layer, CLEAN.head) @ head_out[0, CLEAN.head, -1].double()
    last = CLEAN.seen[f"decoder.{CLEAN.layer}.resid_post"][0, -1].double()
    scale = (last.var(correction=0) + stack.norm.eps).sqrt()
    normed = (written - written.mean()) / scale * stack.norm.weight.double()
    words = CLEAN.model.head.weight
    words = stack.embedding.weight if words is None else words
    return words.double().detach() @ normed.detach()


def _largest_norm(line: str) -> float:
    tokens = tokenizer_in(CLEAN.folder).encode(line)
    seen = trace(CLEAN.model, torch.tensor([[token.id for token in tokens]]))
    head_out = seen[f"{CLEAN.site}.head_out"][0, CLEAN.head].double()
    norms = (head_out @ _columns(CLEAN.layer, CLEAN.head).T).norm(dim=-1)
    counted = [at for at, token in enumerate(tokens) if at and not token.special]
    return float(norms[counted].max())
