"""What the server says of an upload on its way is said by the page, once."""

import pytest

from explorer.app import limits, streamlit_patches
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import KEY
from tests.apps import FIRST, page


@pytest.mark.usefixtures("small_models")
def test_a_page_says_once_why_an_upload_was_not_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit_patches, "session_id", lambda: "somebody")
    at = page(FIRST)
    assert not at.toast
    assert RECEIVED.largest("somebody") == at.session_state[KEY].upload_megabytes * limits.MB
    RECEIVED.note("somebody", limits.UPLOADS_RECEIVING.refusal())
    at.run()
    assert [each.value for each in at.toast] == [limits.UPLOADS_RECEIVING.refusal()]
    at.run()
    assert not at.toast
    RECEIVED.free_left()
    assert RECEIVED.largest("somebody") == limits.UPLOAD_BYTES.most
