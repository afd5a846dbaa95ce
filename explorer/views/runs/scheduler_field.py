"""Where runs train, for who runs the server: its own processes, or a Dask cluster elsewhere."""

import streamlit as st

from explorer.app.controls import expander
from explorer.app.messages import drop_notes, keep_note, say, take_notes
from explorer.app.reader import sees_everything
from explorer.components.fragment import fragment
from explorer.runs.cluster import cluster
from explorer.runs.spec import RunError

LONGEST_ADDRESS = 250


def draw_scheduler_field() -> None:
    """A field for the address of a scheduler; nothing for anybody who does not run the server."""
    if not sees_everything():
        return
    with expander("where_runs_train"):
        st.caption(
            "Usually in processes of this machine. To train on another Dask cluster, give the "
            "address of its scheduler; its workers must see the folder of runs under the same "
            "path. It is used until this server ends; set `DASK_ADDRESS` to use it from the start."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            typed = st.text_input(
                "Address of a Dask scheduler",
                placeholder="tcp://host:8786",
                max_chars=LONGEST_ADDRESS,
                key="scheduler_address",
                width=360,
            )
            st.button("Train there", key="use_scheduler", on_click=_use, args=(typed.strip(),))
        is_trying = _is_trying()
        fragment(every=0.5 if is_trying else None)(_draw_answer)(is_trying)


def _use(address: str) -> None:
    if not sees_everything():
        return
    try:
        cluster().use(address)
        drop_notes("scheduler")
    except RunError as error:
        keep_note("scheduler", str(error), until="changed")


def _is_trying() -> bool:
    thread = cluster().trying
    return thread is not None and thread.is_alive()


def _draw_answer(was_trying: bool) -> None:
    if refused := take_notes("scheduler", "changed"):
        say(*refused)
    elif _is_trying():
        st.caption("Asking the scheduler …")
    elif cluster().answer:
        say(cluster().answer)
    elif address := cluster().given_address:
        st.text(f"Runs train on the Dask cluster at {address}.")
    if was_trying and not _is_trying():
        st.rerun()
