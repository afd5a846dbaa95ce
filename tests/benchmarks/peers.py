"""The libraries the overview is measured beside, in a folder of their own and as they draw.

bertviz and CircuitsVis are installed once per machine under the system's temporary folder,
never beside the app. Their pages ask a CDN for scripts; `answer` gives those from the packages.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import BrowserContext, Route
from safetensors.torch import save_file
from torch import Tensor

from tests.benchmarks.rows import NotMeasured

LIBRARIES = ("bertviz==1.4.1", "circuitsvis==1.43.3")
"""Without what they require: they find torch and numpy where the app has them."""
NEEDED = ("ipython", "importlib-metadata")
"""What they import besides; with everything it requires."""
SCRIPTS = ("d3@5.7.0", "jquery@2.1.0", "requirejs@2.3.6", "plotly.js-dist-min@4.1.2")
OF_THE_CDN = {
    "require.min.js": "requirejs/require.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
    "d3.min.js": "d3/dist/d3.min.js",
}
PLOTLY = "plotly.js-dist-min/plotly.min.js"
SECONDS_TO_FETCH = 240

DRAW = """
import sys
from pathlib import Path
from bertviz import model_view
from circuitsvis.attention import attention_heads, attention_patterns
from safetensors.torch import load_file

given, name, out = sys.argv[1:]
weights = load_file(given)["weights"]
tokens = [f"token{i}" for i in range(weights.shape[-1])]
if name == "bertviz":
    drawn = model_view([layer[None] for layer in weights], tokens, html_action="return").data
elif name == "heads":
    drawn = attention_heads(weights.flatten(0, 1), tokens).local_src
else:
    drawn = attention_patterns(tokens, weights.flatten(0, 1)).local_src
Path(out).write_text('<!doctype html><meta charset="utf-8"><body>' + drawn, "utf-8")
"""

NAMES = {
    "bertviz": "bertviz model_view",
    "heads": "CircuitsVis attention_heads",
    "patterns": "CircuitsVis attention_patterns",
}


@dataclass(frozen=True)
class Peers:
    """Where they lie: Python packages in `python`, scripts in `scripts`."""

    folder: Path

    def draw(self, name: str, weights: Tensor, into: Path) -> Path:
        """The page of a library for weights (layers, heads, tokens, tokens)."""
        given, page = into / "weights.safetensors", into / f"{name}-{weights.shape[-1]}.html"
        save_file({"weights": weights.contiguous()}, given)
        subprocess.run(
            [sys.executable, "-c", DRAW, str(given), name, str(page)],
            env={**os.environ, "PYTHONPATH": str(self.folder / "python")},
            check=True,
            capture_output=True,
        )
        return page

    def script(self, path: str) -> Path:
        return self.folder / "scripts" / path


@dataclass
class Asked:
    """What a page fetched from elsewhere: scripts of its CDN, and anything not foreseen."""

    peers: Peers
    scripts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def answer(self, route: Route) -> None:
        url = route.request.url
        name = url.rpartition("/")[2]
        if name in OF_THE_CDN:
            self.scripts.append(name)
            route.fulfill(path=self.peers.script(OF_THE_CDN[name]))
        else:
            self.others.append(url)
            route.abort()

    def watch(self, context: BrowserContext) -> None:
        context.route(lambda url: url.startswith("http"), self.answer)


def ready() -> Peers:
    """The peers, fetched where they are not there yet; NotMeasured where they cannot be fetched."""
    pins = " ".join((sys.version, *LIBRARIES, *NEEDED, *SCRIPTS))
    name = f"attention-explorer-peers-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=name, dir=folder.parent) as made:
            new = Path(made) / "peers"
            _fetch_python(new / "python")
            _fetch_scripts(new / "scripts")
            new.rename(folder)
    return Peers(folder)


def _fetch_python(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    _run([*pip, *NEEDED])
    _run([*pip, "--no-deps", *LIBRARIES])


def _fetch_scripts(folder: Path) -> None:
    folder.mkdir()
    _run(["npm", "pack", "--silent", "--pack-destination", str(folder), *SCRIPTS])
    for script in SCRIPTS:
        name, _, version = script.rpartition("@")
        with tarfile.open(folder / f"{name}-{version}.tgz") as packed:
            packed.extractall(folder / name, filter="data")
        inside = folder / name / "package"
        for path in list(inside.iterdir()):
            path.rename(folder / name / path.name)


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_TO_FETCH)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotMeasured("the libraries to compare with could not be fetched") from error
