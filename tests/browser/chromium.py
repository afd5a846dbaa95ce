"""A Chromium for the tests: the system's, Debian's package, or Playwright's own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

SHELL = "chromium-headless-shell"
"""The same browser without its windows: a page takes half of the processor's time."""
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BUNDLES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class NoChromium(RuntimeError):
    """There is none and none could be fetched; the message says what to do."""


def find() -> str | None:
    """The path of a Chromium that starts, or None."""
    return next((path for path in candidates() if starts(path)), None)


def candidates() -> Iterator[str]:
    """Where a Chromium may lie: one chosen by hand, the system's, Playwright's own."""
    if chosen := os.environ.get("EXPLORER_CHROMIUM"):
        yield chosen
    yield from filter(None, map(shutil.which, NAMES))
    yield from (path for path in BUNDLES if Path(path).exists())
    own = playwrights_own()
    if Path(own).exists():
        yield own


def playwrights_own() -> str:
    """Where Playwright keeps its Chromium, there or not."""
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def starts(path: str) -> bool:
    """Whether this program is a browser that runs (a stub that asks for a snap is none)."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def ensure() -> str:
    """The path of a Chromium, installed first where there is none."""
    if path := find():
        return path
    for install in (install_package, install_playwrights_own):
        if install() and (path := find()):
            return path
    raise NoChromium(
        "The browser tests need a Chromium and none could be installed: install Chromium or "
        "Google Chrome, or name one in EXPLORER_CHROMIUM, and run the tests again."
    )


def install_package() -> bool:
    """Debian's package without windows, or Debian's or Ubuntu's whole one, where we may install."""
    if not shutil.which("apt-get"):
        return False
    rights: list[str] = []
    if os.geteuid() != 0:
        rights = ["sudo", "-n"]
        if not shutil.which("sudo") or not run([*rights, "true"]):
            return False
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    run([*rights, *quiet, "update"])
    install = [*rights, *quiet, "install", "-y", "--no-install-recommends"]
    return run([*install, SHELL]) or run([*install, "chromium"])


def install_playwrights_own() -> bool:
    """Playwright's own build, with the system libraries it needs where we may install them."""
    playwright = [sys.executable, "-m", "playwright"]
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("apt-get"):
        run([*playwright, "install-deps", "chromium"])
    return run([*playwright, "install", "chromium"])


def run(command: Sequence[str]) -> bool:
    """Whether the command ended well; what it says goes to the test's output."""
    try:
        return subprocess.run(command, timeout=900).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
