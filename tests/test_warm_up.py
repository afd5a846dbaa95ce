"""What is loaded before the first reader comes is loaded without one."""

from __future__ import annotations

import subprocess
import sys

from tests.served import ROOT


def test_warming_up_asks_for_no_reader() -> None:
    """Else Streamlit says four times at every start that a reader is missing."""
    warm = subprocess.run(
        [sys.executable, "-c", "from explorer import session; session.warm_up()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ScriptRunContext" not in warm.stderr + warm.stdout
