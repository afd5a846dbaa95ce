"""The graph of a circuit: its nodes, and the edges that carry a difference from one to another."""

from dataclasses import dataclass

from explorer.analysis.wiring import Kind, Reads


@dataclass(frozen=True, order=True)
class CircuitNode:
    """What writes into the residual stream or reads it; `head` is 0 where it is no head."""

    kind: Kind
    layer: int = 0
    head: int = 0

    @property
    def title(self) -> str:
        """What it is called on screen: 23.3 is head 3 of layer 23."""
        if self.kind == "head":
            return f"{self.layer}.{self.head}"
        return f"MLP {self.layer}" if self.kind == "feed-forward" else self.kind


@dataclass(frozen=True)
class Edge:
    """What `target` reads of what `source` wrote, in the residual stream of each position.

    `estimate` is the part of the metric that it carries by attribution, the mean over the pairs,
    `spread` its standard deviation over them, and `exact` that found by patching, where it was.
    """

    source: CircuitNode
    target: CircuitNode
    reads: Reads
    estimate: float
    spread: float | None = None
    exact: float | None = None

    @property
    def title(self) -> str:
        to = f"{self.target.title} {self.reads}".strip()
        return f"{self.source.title} → {to}"
