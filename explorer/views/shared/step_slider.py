"""A control that steps forward, back and in time; the address has its step."""

from collections.abc import Callable, Sequence

from explorer.app import address, streamlit_patches, widget_state
from explorer.app.controls import follow, number_in_address, say_invalid
from explorer.components.player import player


def stepper(
    key: str, count: int, usual: int, *, names: Sequence[str] = (), arrows: bool = False
) -> int:
    """Draw a control of `count` steps and return the chosen one, by default the `usual` one.

    The steps are numbered from 0 unless they have `names`. With `arrows` the arrow keys step and P
    plays; only one stepper of a page may have them.
    """
    at = chosen_step(key, count, usual)
    draw_stepper(key, count, usual, names=names, arrows=arrows)
    return at


def chosen_step(key: str, count: int, usual: int) -> int:
    """The step that the reader or the address chose, before the control is drawn."""
    follow(key, usual)
    if not widget_state.has(key) or streamlit_patches.came_back():
        widget_state.put(key, number_in_address(key, 0, count - 1, usual))
    elif not 0 <= widget_state.get(key, usual) < count:
        widget_state.put(key, usual)
    return widget_state.get(key, usual)


def draw_stepper(
    key: str,
    count: int,
    usual: int,
    *,
    names: Sequence[str] = (),
    arrows: bool = False,
    on_grow: Callable[[], None] | None = None,
) -> None:
    """Draw the control at the chosen step, and write that into the address.

    With `on_grow` the reader may step beyond the last; `on_grow` then makes that step.
    """
    at = int(widget_state.get(key))

    def move(to: int) -> None:
        if to < count:
            widget_state.put(key, to)
        elif on_grow:
            on_grow()

    player(
        address.row_of(key).label,
        count,
        at,
        key=f"{key}_steps",
        on_move=move,
        names=names,
        keys=arrows,
        grows=on_grow is not None,
    )
    if at != usual:
        address.write(key, str(at))
    elif address.is_named(key):
        address.remove(key)
    say_invalid(key, at)
