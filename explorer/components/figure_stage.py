"""The stage: a figure on it takes the window that is left below its top (`figure_stage.js`)."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def stage(key: str) -> DeltaGenerator:
    """The container of one view that is as high as the window allows, or as its picture needs."""
    return st.container(gap=None, key=f"stage-{key}")


def chart_stage(key: str) -> DeltaGenerator:
    """The container of one chart or table, whose height is the window that is left."""
    return st.container(gap=None, key=f"stage-chart-{key}")
