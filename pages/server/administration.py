"""What this server does and holds, and for whom, as a number: to stop it or delete it."""

import streamlit as st

from explorer.views.administration import (
    everybodys_runs,
    everybodys_uploads,
    reader_numbers,
    running_pages,
    server_figures,
    token_field,
)

st.title("Administration", anchor=False)
token_field.let_in_or_stop()
st.markdown("What this server does and holds for its readers, who are shown as numbers.")
server_figures.draw_figures()
st.button("Refresh", key="admin_refresh")
numbers = reader_numbers.all_numbers()
running_pages.draw_pages(numbers)
everybodys_runs.draw_runs(numbers)
everybodys_uploads.draw_uploads(numbers)
