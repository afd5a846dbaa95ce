"""What runs on this server and for whom, as a number: to stop it or delete it."""

import streamlit as st

from explorer.views.administration import everybodys_runs, server_figures, token_field

st.title("Administration", anchor=False)
token_field.let_in_or_stop()
st.markdown(
    "What this server holds, and the training runs of its readers, who are shown as numbers."
)
server_figures.draw_figures()
everybodys_runs.draw_runs()
