"""Draws `architecture.svg`, which room imports from which: `python -m docs.architecture`.

The arrows are those that `tests/test_house.py` reads. A test compares the picture with them.
"""

from html import escape
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import mean

from docs.readme import ROOT, purpose
from tests.test_house import ORDER, room, room_imports

FILE = Path(__file__).with_name("architecture.svg")
BOX, GAP, GAP_WIDTH, FLOOR, EDGE = (132, 38), 22, 4, 84, 28
"""Width and height of a room; between two; width of an arrow; between floors; the margin."""
SWEEPS = 24
STYLE = """
  svg { font: 15px system-ui, sans-serif; background: #ffffff }
  rect { fill: #f3f5f7; stroke: #8a939c } text { fill: #1b1f23; text-anchor: middle }
  path { fill: none; stroke: #5b6670; stroke-width: 1.3; marker-end: url(#tip) }
  .screen { fill: #dcebf7; stroke: #0072b2 } polygon { fill: #5b6670 }
  @media (prefers-color-scheme: dark) {
    svg { background: #14181c } rect { fill: #20262c; stroke: #6f7a85 }
    text { fill: #e8ecf0 } path { stroke: #96a1ac } polygon { fill: #96a1ac }
    .screen { fill: #16334a; stroke: #56b4e9 }
  }
"""
SCREEN = {"app", "components", "views", "pages"}
"""Rooms that import streamlit, or are its pages."""
Rooms = dict[str, set[str]]


def arrows() -> Rooms:
    """Every room with those that its modules import from, itself left out."""
    found: Rooms = {name: set() for name in ORDER}
    for module, other in room_imports():
        found[room(module)].add(other)
    return found


def needed(graph: Rooms) -> Rooms:
    """Without the arrows that follow from two or more others."""
    reached: Rooms = {}
    for name in ORDER:
        reached[name] = graph[name].union(*(reached[other] for other in graph[name]))
    return {
        name: {to for to in others if not any(to in reached[between] for between in others - {to})}
        for name, others in graph.items()
    }


def floors(graph: Rooms) -> dict[str, int]:
    """Each room above all that it imports from, and just below the lowest that needs it."""
    height: dict[str, int] = {}
    for name in ORDER:
        height[name] = 1 + max((height[other] for other in graph[name]), default=-1)
    for name in reversed(ORDER):
        above = [height[up] for up in ORDER if name in graph[up]]
        height[name] = min(above) - 1 if above else height[name]
    return height


def ways(graph: Rooms, height: dict[str, int]) -> list[list[str]]:
    """Every arrow as the rooms and the gaps that it goes through, floor by floor downwards."""
    return [
        [name, *(f"{name} {to} {floor}" for floor in range(height[name] - 1, height[to], -1)), to]
        for name in ORDER
        for to in sorted(graph[name])
    ]


def rows_of(height: dict[str, int], through: list[list[str]]) -> list[list[str]]:
    """Rooms and gaps by floor, in the order of the mean of those that they are joined to."""
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for name in ORDER:
        rows[height[name]].append(name)
    ties: dict[str, list[str]] = {name: [] for name in ORDER}
    for way in through:
        for gap in way[1:-1]:
            rows[int(gap.split()[-1])].append(gap)
            ties[gap] = []
        for upper, lower in pairwise(way):
            ties[upper].append(lower)
            ties[lower].append(upper)
    places: dict[str, float] = {}
    for _ in range(SWEEPS):
        for row in rows:
            row.sort(key=lambda each: mean(places.get(to, 0.0) for to in ties[each]))
            places |= placed(row)
    return rows


def placed(row: list[str]) -> dict[str, float]:
    """The middle of each room and gap of one floor, which is centred around 0."""
    sizes = [GAP_WIDTH if " " in each else BOX[0] for each in row]
    ends = [*accumulate(size + GAP for size in sizes)]
    shift = (ends[-1] - GAP) / 2
    return {
        each: end - GAP - size / 2 - shift for each, end, size in zip(row, ends, sizes, strict=True)
    }


def picture() -> str:
    """The rooms on their floors, `models` at the bottom, and the arrows down to what they need."""
    graph = needed(arrows())
    height = floors(graph)
    through = ways(graph, height)
    rows = rows_of(height, through)
    x = {each: middle for row in rows for each, middle in placed(row).items()}
    half = max(max(placed(row).values()) + BOX[0] / 2 for row in rows) + EDGE
    x = {each: round(half + middle, 1) for each, middle in x.items()}
    y = {
        each: EDGE + (len(rows) - 1 - floor) * FLOOR
        for floor, row in enumerate(rows)
        for each in row
    }
    width, tall = 2 * half, 2 * EDGE + (len(rows) - 1) * FLOOR + BOX[1]
    tip = '<marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {tall}" '
            f'width="{width:g}" height="{tall}" role="img">',
            "<title>Which room of the app imports from which</title>",
            f"<style>{STYLE}</style>",
            f'<defs>{tip}<polygon points="0,1 7,4 0,7"/></marker></defs>',
            *(line([(x[each], y[each]) for each in way]) for way in through),
            *(box(name, x[name], y[name]) for name in ORDER),
            "</svg>\n",
        )
    )


def line(through: list[tuple[float, int]]) -> str:
    """From the foot of one room to the top of another, upright at every floor."""
    x, y = through[0][0], through[0][1] + BOX[1]
    drawn = f"M{x:g} {y}"
    for at, (end, top) in enumerate(through[1:], start=2):
        bend = (top - y) / 2
        drawn += f" C{x:g} {y + bend:g} {end:g} {top - bend:g} {end:g} {top}"
        x, y = end, top + BOX[1]
        drawn += f" V{y}" if at < len(through) else ""
    return f'<path d="{drawn}"/>'


def box(name: str, middle: float, top: int) -> str:
    folder = ROOT / (name if name in ("models", "pages") else f"explorer/{name}")
    says = escape(purpose(folder / "__init__.py"))
    kind = ' class="screen"' if name in SCREEN else ""
    return (
        f"<g><title>{says}</title>"
        f'<rect{kind} x="{middle - BOX[0] / 2:g}" y="{top}" width="{BOX[0]}" height="{BOX[1]}" '
        f'rx="6"/><text x="{middle:g}" y="{top + 25}">{name}</text></g>'
    )


if __name__ == "__main__":
    FILE.write_text(picture(), "utf-8")
