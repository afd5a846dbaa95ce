"""The libraries the overview is measured beside, in a folder of their own and as they draw.

bertviz and CircuitsVis are installed once per machine under the system's temporary folder,
never beside the app. Their pages ask a CDN for scripts, which are fetched with them.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from tests.benchmarks.drawings import HEADS, LAYERS, Drawing
from tests.benchmarks.measuring import NotMeasured

LIBRARIES = ("bertviz==1.4.1", "circuitsvis==1.43.3")
"""Without what they require: they find torch and numpy where the app has them."""
NEEDED = ("ipython", "importlib-metadata")
"""What they import besides; with everything it requires."""
PACKAGES = ("d3@5.7.0", "jquery@2.1.0", "requirejs@2.3.6", "plotly.js-dist-min@4.1.2")
SCRIPTS = {
    "require.min.js": "requirejs-2.3.6/package/require.js",
    "jquery.min.js": "jquery-2.1.0/package/dist/jquery.min.js",
    "d3.min.js": "d3-5.7.0/package/dist/d3.min.js",
    "plotly.min.js": "plotly.js-dist-min-4.1.2/package/plotly.min.js",
}
"""Under which names the pages ask for them, and where the packages have them."""

DRAW = """
import sys
from pathlib import Path
from bertviz import model_view
from circuitsvis.attention import attention_heads, attention_patterns
from safetensors.torch import load_file

given, name, out = sys.argv[1:]
weights = load_file(given)["weights"]
tokens = [f"token{i}" for i in range(weights.shape[-1])]
if name == "bertviz model_view":
    drawn = model_view([layer[None] for layer in weights], tokens, html_action="return").data
elif name == "CircuitsVis attention_heads":
    drawn = attention_heads(weights.flatten(0, 1), tokens).local_src
else:
    drawn = attention_patterns(tokens, weights.flatten(0, 1)).local_src
Path(out).write_text('<!doctype html><meta charset="utf-8"><body>' + drawn, "utf-8")
"""

BERTVIZ = "bertviz model_view"
NAMES = (BERTVIZ, "CircuitsVis attention_heads", "CircuitsVis attention_patterns")


def draw(name: str, weights: Tensor, into: Path) -> Drawing:
    """The page of a library: bertviz draws a line for every weight, the others a canvas a head."""
    given, tokens = into / "weights.safetensors", weights.shape[-1]
    page = into / f"{name}-{tokens}.html"
    save_file({"weights": weights.contiguous()}, given)
    call = [sys.executable, "-c", DRAW, str(given), name, str(page)]
    env = os.environ | {"PYTHONPATH": str(ready() / "python")}
    subprocess.run(call, env=env, check=True, capture_output=True)
    heads = LAYERS * HEADS
    if name == BERTVIZ:
        return Drawing(page, "svg line", heads * tokens * tokens)
    return Drawing(page, "canvas", heads)


def scripts() -> dict[str, Path]:
    """What the pages ask their CDN for."""
    return {name: ready() / "scripts" / path for name, path in SCRIPTS.items()}


def ready() -> Path:
    """The peers' folder, fetched where it is not there; NotMeasured where it cannot be fetched."""
    pins = " ".join((sys.version, *LIBRARIES, *NEEDED, *PACKAGES))
    name = f"attention-explorer-peers-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(prefix=name, dir=folder.parent) as made:
        new = Path(made) / "peers"
        packed = new / "scripts"
        packed.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(new / "python")]
        npm = ["npm", "pack", "--silent", "--pack-destination", str(packed)]
        try:
            for command in ([*pip, *NEEDED], [*pip, "--no-deps", *LIBRARIES], [*npm, *PACKAGES]):
                subprocess.run(command, check=True, capture_output=True, timeout=240)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotMeasured("the libraries to compare with could not be fetched") from error
        for path in packed.glob("*.tgz"):
            with tarfile.open(path) as archive:
                archive.extractall(path.with_suffix(""), filter="data")
        new.rename(folder)
    return folder
