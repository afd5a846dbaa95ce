"""Two replicas behind nginx with the settings of `deploy`: the readers of one that dies go on."""

from pathlib import Path

import pytest

from explorer.app.reader import COOKIE
from tests import proxy
from tests.browser.conftest import Visit
from tests.served import Server, wait_until

MATRIX, GRID = "attention_head", "overview"
SECRET = "Romeo"
LINK = f"/attention?model=shakespeare&text=To+be,+{SECRET}&layer=1&head=1"


def test_readers_of_a_killed_replica_go_on_with_the_view_of_their_link(
    tmp_path: Path, server: Server, visit: Visit
) -> None:
    try:
        proxy.ensure()
    except proxy.NoNginx as error:
        pytest.skip(str(error))
    # The same folder under a name of its own: at the end, the processes of that name are ended.
    runs = tmp_path / "runs"
    runs.symlink_to(server.runs)
    with (
        Server(runs, env=proxy.SHARED) as killed,
        proxy.before([killed, server], tmp_path / "proxy") as both,
    ):
        visitor = visit(url=both.url)
        key = both.reader_of(killed)
        visitor.context.add_cookies([{"name": COOKIE, "value": key, "url": both.url}])
        page = visitor.open(LINK)
        before, line = visitor.picture(MATRIX), visitor.socket
        visitor.has_everything()  # or what it is sending is cut short
        killed.kill()
        wait_until(lambda: (page.evaluate("0"), visitor.socket is not line)[1], "another line")
        visitor.rest()
        visitor.shows(MATRIX, before)
        visitor.asks(model="shakespeare")
        visitor.at_head(1, 1)
        visitor.pick(GRID, layer=1, head=3)  # the first that the other replica hears of them
        visitor.at_head(1, 3)
        visitor.changed(MATRIX, before)
        visitor.has_everything()
        assert both.place_of(key) is server
        visitor.no_mishap()
        visitor.leave()  # before its proxy ends
        assert not any(SECRET in log for log in (both.proxy.log, killed.log, server.log))
