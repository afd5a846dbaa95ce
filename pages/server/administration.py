"""For the operator: what this server does and stores, and the buttons that stop or delete it."""

import streamlit as st

from explorer.views.administration import server_activity

st.title("Administration", anchor=False)
server_activity.let_in_or_stop()
st.markdown("What this server does and stores. Readers are shown as numbers.")
server_activity.draw_figures()
st.button("Refresh", key="admin_refresh")
numbers = server_activity.all_numbers()
server_activity.draw_pages(numbers)
server_activity.draw_runs(numbers)
server_activity.draw_uploads(numbers)
