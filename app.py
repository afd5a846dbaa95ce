"""The server: settings of the process, middleware before Streamlit, start and shutdown.

Run it with `streamlit run app.py`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware

from explorer.app import admin_token, streamlit_patches
from explorer.server import (
    connection_limits,
    host_check,
    housekeeping,
    json_logs,
    message_limits,
    prometheus,
)
from explorer.server.answer_pieces import AnswerPieces
from explorer.server.connection_limits import ConnectionLimits
from explorer.server.front_page import FrontPage
from explorer.server.graceful_shutdown import Drain, GracefulShutdown
from explorer.server.host_check import HostCheck
from explorer.server.message_limits import MessageLimits
from explorer.server.reader_cookie import ReaderCookie
from explorer.server.security_headers import SecurityHeaders
from explorer.server.upload_limits import UploadLimits
from explorer.system import cooperative, limits

SETTINGS = (limits, host_check, admin_token, json_logs, prometheus)

if fault := next(filter(None, (setting.fault() for setting in SETTINGS)), None):
    sys.exit(fault)

if json_logs.are_wanted():
    json_logs.install()

# The scripts of many readers compete for the interpreter with the loop that talks to the browsers:
# with the default interval of 5 ms the loop sometimes fell a second behind.
sys.setswitchinterval(0.0005)

# Torch reads this when it is loaded. Every run of a page is a new thread, and with several OpenMP
# threads the first matrix product in each took 4 ms instead of 0.02 ms.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Torch reads this when it first allocates memory: large tensors then use huge pages, if the kernel
# has them, and a pretrained model generates some percent faster.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

streamlit_patches.install_in_server()
housekeeping.wait_for_pandas()
drain = Drain()


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    connection_limits.raise_file_limit()
    drain.wait_for_sigterm()
    end_figures = prometheus.serve(
        readers=lambda: len(drain.sockets), draining=lambda: drain.has_begun
    )
    cooperative.set_cancel_check(streamlit_patches.end_if_unwanted)
    warm_up = housekeeping.WarmUp()
    warm_up.thread.start()
    cleanup = asyncio.create_task(housekeeping.clean_up_forever())
    print_address()
    yield
    cleanup.cancel()
    await asyncio.to_thread(warm_up.end)
    end_figures()


def print_address() -> None:
    """Print the address for whoever started the server, or log the port as JSON."""
    address, port = st.get_option("server.address"), st.get_option("server.port")
    if json_logs.are_wanted():
        json_logs.log.info("Listening.", extra={"port": port})
        return
    where = host_check.address_to_open(
        address, port, by_tls=bool(st.get_option("server.sslCertFile"))
    )
    sys.stdout.write(f"\n  The app is at {where}\n\n")
    sys.stdout.flush()


connection_limits.limit_connections()
message_limits.limit_frames()
app = st.App(
    "explorer/app/shell.py",
    lifespan=lifespan,
    middleware=[  # the first is the outermost
        Middleware(AnswerPieces),
        Middleware(SecurityHeaders),
        Middleware(FrontPage),
        Middleware(prometheus.RequestCounts),
        Middleware(GracefulShutdown, drain=drain),
        Middleware(HostCheck, hosts=map(st.get_option, host_check.STREAMLIT_HOSTS)),
        Middleware(ConnectionLimits),
        Middleware(ReaderCookie),
        Middleware(MessageLimits, is_for_readers=streamlit_patches.is_for_readers),
        Middleware(UploadLimits),
    ],
)
