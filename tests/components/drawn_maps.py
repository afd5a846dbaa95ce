"""What the tests of the picture of the pass share: how it is opened, and what it tells."""

import re

import torch
from playwright.sync_api import expect
from torch import Tensor

from explorer.analysis.information_flow import InformationFlow
from explorer.text.number_format import three
from tests.browser.map_places import Drawn
from tests.browser.screen import painted
from tests.components.conftest import OpenDemo
from tests.components.flows import made_up

USUAL = 0.005
SELF = "decoder.self_attn"
FLOW = made_up(2, 6)


def others(part: str, values: Tensor) -> Tensor:
    """What stands between two tokens, (layers, q, k)."""
    own = torch.eye(values.shape[-1]).bool() if part.endswith("self_attn") else False
    return values.masked_fill(torch.as_tensor(own), 0)


def every_share(flow: InformationFlow) -> int:
    """How many keys have a share in another token."""
    return sum(
        int((others(part, found.keys) > 0).sum())
        for blocks in flow.stacks.values()
        for block in blocks
        for part, found in block.attended.items()
    )


def opened(open_demo: OpenDemo, show: str, **how: object) -> Drawn:
    return whole(Drawn(open_demo("flow", show, **how)))


def whole(drawn: Drawn) -> Drawn:
    """Once all that comes behind the picture is there."""
    expect(drawn.visitor.page.get_by_text(re.compile(r"^told .*, run \d+$"))).to_be_visible()
    painted(drawn.visitor)
    return drawn


def percent(value: Tensor | float) -> str:
    return f"{three(100 * float(value))} %"


def told(drawn: Drawn, value: object) -> None:
    expect(
        drawn.visitor.page.get_by_text(re.compile(rf"^told \('chosen', {re.escape(str(value))}\)"))
    ).to_be_visible()
