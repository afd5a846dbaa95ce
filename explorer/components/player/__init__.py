"""Steps forward and back, by hand, by key and in time: buttons, a slider, and play.

Playing is done by the browser: it chooses the next step when this one is on screen, so a played
step costs what a clicked one costs. It ends at the last step and with anything else that the
reader does. Who asks the system for less motion has the steps and no play.
"""

from collections.abc import Callable, Sequence

from explorer.components import events, wire
from explorer.components.mounting import View

SPEEDS = {"0.5": "0.5×", "1": "1×", "2": "2×", "4": "4×"}
"""Steps in a second, and what they are called."""
SPEED = "".join(f'<option value="{value}">{name}</option>' for value, name in SPEEDS.items())
MOVES = f"""
<button type="button" class="back" aria-label="Back" title="Back"></button>
<button type="button" class="play" aria-label="Play" title="Play (P)"></button>
<button type="button" class="on" aria-label="Next" title="Next"></button>
<select class="speed" aria-label="Speed" title="Steps in a second">{SPEED}</select>
"""
PLAYER_HTML = f"""
<div class="view player" role="group" aria-label="Steps">
  <div class="moves">{MOVES}
    <input type="range" class="place" min="0" step="1">
    <span class="where"></span>
  </div>
</div>
"""
PLAYER_HEIGHT = 40

_VIEW = View("player", PLAYER_HTML)


def player(
    label: str,
    count: int,
    at: int,
    *,
    key: str,
    on_move: Callable[[int], None],
    names: Sequence[str] = (),
    keys: bool = False,
    grows: bool = False,
) -> None:
    """Draw it at one of so many steps; `on_move(step)` is called before the next run.

    A step says its number and the last one's, or its name where there are `names`. With `keys`
    the arrow keys step and P plays, which one player of a page may have. Where it `grows`, the
    next of the last is one step more, which the page makes.
    """

    def hand_over() -> None:
        choice = events.chosen(key)
        is_step = isinstance(choice, list) and choice
        step = events.place(choice[0], count + grows) if is_step else None
        if step is not None:
            on_move(step)

    header = {
        "name": key,
        "tells": True,
        "label": label,
        "count": count,
        "names": list(names),
        "keys": keys,
        "grows": grows,
    }
    _VIEW(
        key=key,
        data=wire.pack(header),
        height=PLAYER_HEIGHT,
        choice=[at],
        figures=None,
        on_chosen_change=hand_over,
    )
