"""Every view on a page of its own: `streamlit run tests/components/demo.py`.

Each page also runs alone, and takes what it shows from the address.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent


def index() -> None:
    st.title("Views")


demos = [st.Page(path, title=path.stem) for path in sorted(HERE.glob("demo_*.py"))]
st.navigation([st.Page(index, title="Views", default=True), *demos]).run()
