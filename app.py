"""The server: settings of the process, the door before Streamlit, an orderly start and end.

Run it with `streamlit run app.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware

from explorer.app import admin_token, streamlit_patches
from explorer.server import (
    connections,
    door,
    json_logs,
    measures,
    open_files,
    own_address,
    shared_imports,
)
from explorer.server.crowd import Crowd
from explorer.server.draining import Drain, Draining
from explorer.server.incoming_messages import Messages
from explorer.server.measures import Measured
from explorer.server.own_address import address_to_open
from explorer.server.reader_cookie import ReaderCookie
from explorer.server.security_headers import SecurityHeaders
from explorer.server.sweeping import sweep_again_and_again
from explorer.server.upload_gate import UploadGate
from explorer.server.warm_up import WarmUp
from explorer.system import cooperative, limits

SETTINGS = (limits, door, admin_token, json_logs, measures)

if fault := next(filter(None, (setting.fault() for setting in SETTINGS)), None):
    sys.exit(fault)

if json_logs.are_wanted():
    json_logs.install()

# Many readers' scripts want the interpreter at once, and the loop that talks to the browsers
# stands in the same queue: at 5 ms a turn it fell a second behind now and then.
sys.setswitchinterval(0.0005)

# Read when torch is loaded. Every run of a page is a new thread, and with more than one
# OpenMP thread the first matrix product in each of them took 4 ms instead of 0.02.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Read when torch first takes memory: tensors of megabytes lie on large pages, where the kernel
# has them, and a published model writes some percent faster.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

streamlit_patches.draw_whole_page_first()
streamlit_patches.take_only_values_that_can_be()
streamlit_patches.bound_files_of_an_upload()
streamlit_patches.draw_fragments_where_they_are()
streamlit_patches.read_theme_once()
streamlit_patches.take_hashes_back()
shared_imports.wait_for_pandas()
drain = Drain()


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    open_files.raise_soft_limit()
    drain.wait_for_sigterm()
    end_measures = measures.serve(
        readers=lambda: len(drain.lines), draining=lambda: drain.has_begun
    )
    cooperative.set_cancel_check(streamlit_patches.end_if_unwanted)
    warm_up = WarmUp()
    warm_up.thread.start()
    sweeping = asyncio.create_task(sweep_again_and_again())
    say_where()
    yield
    sweeping.cancel()
    await asyncio.to_thread(warm_up.end)
    end_measures()


def say_where() -> None:
    """To whoever started it; a log that is read by programs has no address."""
    address, port = st.get_option("server.address"), st.get_option("server.port")
    if json_logs.are_wanted():
        json_logs.log.info("Listening.", extra={"port": port})
        return
    where = address_to_open(address, port, by_tls=bool(st.get_option("server.sslCertFile")))
    sys.stdout.write(f"\n  The app is at {where}\n\n")
    sys.stdout.flush()


streamlit_patches.ask_nobody_for_addresses()
connections.bound()
app = st.App(
    "explorer/app/shell.py",
    lifespan=lifespan,
    middleware=[  # the first is the outermost
        Middleware(SecurityHeaders),
        Middleware(Measured),
        Middleware(Draining, drain=drain),
        Middleware(door.Door, hosts=map(st.get_option, own_address.SETTINGS)),
        Middleware(Crowd),
        Middleware(ReaderCookie),
        Middleware(Messages, is_for_readers=streamlit_patches.is_for_readers),
        Middleware(UploadGate),
    ],
)
