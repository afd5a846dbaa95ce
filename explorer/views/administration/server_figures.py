"""What the process that answers holds: its readers, memory, files and time."""

from __future__ import annotations

import shutil
import time

import streamlit as st
from prometheus_client import REGISTRY

from explorer.system.data_folders import runs_root
from explorer.system.limits import GB, MB
from explorer.views.training.run_words import duration


def draw_figures() -> None:
    """A row of numbers; one of several replicas has its own."""
    with st.container(horizontal=True, gap="large"):
        for name, value in figures().items():
            st.metric(name, value, width="content")


def figures() -> dict[str, str]:
    """Of this process; without those that its system does not tell."""
    found = {
        "Connected pages": _figure("explorer_readers", "{:,.0f}"),
        "Memory": _figure("process_resident_memory_bytes", "{:,.0f} MB", MB),
        "Open files": _figure("process_open_fds", "{:,.0f}"),
        "Running for": _running_for(),
        "Free disk": _free_disk(),
    }
    return {name: value for name, value in found.items() if value}


def _figure(name: str, words: str, unit: float = 1) -> str:
    value = REGISTRY.get_sample_value(name)
    return "" if value is None else words.format(value / unit)


def _running_for() -> str:
    begun = REGISTRY.get_sample_value("process_start_time_seconds")
    return "" if begun is None else duration(time.time() - begun)


def _free_disk() -> str:
    try:
        return f"{shutil.disk_usage(runs_root()).free / GB:,.1f} GB"
    except OSError:
        return ""
