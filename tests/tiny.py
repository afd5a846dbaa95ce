"""Every tiny model, folder and run of the tests: ours, the reference library's, and trainings.

Only `models` and the texts are imported here; what fewer tests need is imported where it is used.
"""

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from explorer.text import Tokenizer, byte_tokenizer, character_tokenizer, word_tokenizer
from explorer.text.token import CLASSIFIER, DECODER, SOURCE
from models import save_checkpoint
from models.config import GenerationConfig, TransformerConfig
from models.model import Transformer

if TYPE_CHECKING:
    from explorer.catalog.opened_model import OpenModel
    from explorer.runs.run import Run
    from explorer.runs.spec import RunSpec

Model = TypeVar("Model", bound=nn.Module)

# ---- models in memory ------------------------------------------------------------------

SMALL = TransformerConfig(
    vocab_size=13, d_model=12, n_layers=2, n_heads=3, d_ff=20, max_len=16, pad_id=0
)
"""A vocabulary of 13, three heads of width 4: no two sizes can be taken for each other."""


def config_of(kind: str = "decoder", **changes: Any) -> TransformerConfig:
    """SMALL as another kind; an encoder-decoder has stacks of unequal depth and vocabulary."""
    if kind == "encoder-decoder":
        changes = {"src_vocab_size": 17, "n_encoder_layers": 1} | changes
    return SMALL.replace(kind=kind, **changes)


def shake(model: Model, by: float = 0.3, seed: int = 1) -> Model:
    """Noise on every parameter: zero biases and unit norms would hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise.to(parameter.dtype), alpha=by)
    return model


def shaken(config: TransformerConfig, dtype: torch.dtype = torch.float64) -> Transformer:
    """A model with no special value in it, in eval mode."""
    return shake(Transformer(config).to(dtype)).eval()


def ids_of(batch: int, length: int, vocab_size: int = 13, seed: int = 2) -> Tensor:
    """Random ids without 0, the padding of SMALL, and without 1 and 2."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocab_size, (batch, length), generator=generator)


def keep_of_lengths(lengths: list[int], width: int, side: str = "right") -> Tensor:
    """True on the real tokens of sequences of these lengths, padded on one side."""
    here = torch.arange(width)[None]
    kept = torch.tensor(lengths)[:, None]
    return here < kept if side == "right" else here >= width - kept


def inputs_of(config: TransformerConfig, batch: int = 3, length: int = 6) -> tuple[Tensor, ...]:
    """What a model of this config reads: ids, or source and (shorter) target."""
    if config.kind != "encoder-decoder":
        return (ids_of(batch, length, config.vocab_size),)
    source = ids_of(batch, length, config.src_vocab_size or config.vocab_size)
    return source, ids_of(batch, length - 1, config.vocab_size, seed=3)


def keeps_of(
    config: TransformerConfig, side: str, batch: int = 3, length: int = 6
) -> dict[str, Any]:
    """Keyword arguments that pad all but the first sequence; the last one keeps nothing."""
    if side == "none":
        return {}
    lengths = [length, length - 3] + [0] * (batch - 2)
    if config.kind != "encoder-decoder":
        return {"keep": keep_of_lengths(lengths, length, side)}
    return {
        "source_keep": keep_of_lengths(lengths, length, side),
        "target_keep": keep_of_lengths([max(0, each - 1) for each in lengths], length - 1, side),
    }


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of everything that a training may change."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_equal_weights(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


# ---- folders of ours -------------------------------------------------------------------

WORDS = (
    "the a black white cat dog sleeps eats does not le la un chat chien noir dort ne pas".split()
)
NAMES = ("translation", "letters", "reviews", "reverse")
TINY = TransformerConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=24)
SPECIAL = {"encoder": CLASSIFIER, "decoder": DECODER, "encoder-decoder": SOURCE}
LETTERS = "the cat and the hat " * 20
"""What a tokenizer of pieces learns from."""


def save_small_models(folder: Path) -> Path:
    """Models called translation, letters, reviews and reverse in this folder."""
    more = {"examples": ["a white dog eats", "line one\nline two", 3]}
    save_model(folder, "translation", None, "the black cat sleeps", more, kind="encoder-decoder")
    letters = byte_tokenizer(LETTERS, 280, DECODER)
    save_model(folder, "letters", letters, kind="decoder", n_layers=2, n_heads=4)
    classes = {"classes": ["negative", "positive"]}
    save_model(folder, "reviews", None, "not a cat", classes, kind="encoder", head="classifier")
    digits = character_tokenizer("0123456789", DECODER)
    save_model(folder, "reverse", digits, "31415", kind="encoder", head="language-model")
    return folder


def reading(tokenizer: Tokenizer, config: TransformerConfig) -> TransformerConfig:
    """This config for a model that reads with this tokenizer."""
    begins, ends = tokenizer.bos_id, GenerationConfig.ending_with(tokenizer.eos_id)
    config = config.replace(vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id)
    return config.replace(bos_id=begins, generation=ends)


def save_model(
    folder: Path,
    name: str,
    tokenizer: Tokenizer | None = None,
    example: str = "the cat",
    run: Mapping[str, object] | None = None,
    *,
    kind: str = "decoder",
    **changes: Any,
) -> None:
    """One untrained model with its tokenizer, which knows WORDS where none is given."""
    tokenizer = tokenizer or word_tokenizer(WORDS, SPECIAL[kind])
    config = reading(tokenizer, TINY).replace(kind=kind, **changes)
    run = {"title": name.capitalize(), "example": example, **(run or {})}
    save_checkpoint(folder / name, Transformer(config), tokenizer=tokenizer.to_json(), run=run)


def save_forced_to_begin(folder: Path, name: str) -> None:
    """An encoder-decoder that must begin with token 5, and may never write 6 nor 7."""
    ends = GenerationConfig.ending_with(word_tokenizer(WORDS, SOURCE).eos_id)
    generation = ends.replace(forced_first_id=5, banned_ids=(6, 7))
    save_model(folder, name, kind="encoder-decoder", generation=generation)


def saved_and_opened(
    folder: Path,
    name: str,
    tokenizer: Tokenizer | None = None,
    example: str = "the cat",
    *,
    shaken_by: float = 0.0,
    dtype: torch.dtype = torch.float32,
    **changes: Any,
) -> "OpenModel":
    """One such model as the app opens it, shaken or not."""
    from explorer.catalog.opened_model import open_checkpoint

    save_model(folder, name, tokenizer, example, **changes)
    opened = open_checkpoint(folder / name, name)
    if shaken_by:
        shake(opened.model.to(dtype), by=shaken_by)
    return opened


def oversized_model(folder: Path, **sizes: int) -> Path:
    """A folder of ours whose config asks for these sizes; the weights are those of a tiny model."""
    save_checkpoint(folder, Transformer(TransformerConfig(d_model=4, n_heads=1, d_ff=0)))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | sizes), "utf-8")
    return folder


def export_gpt2(folder: Path) -> None:
    """SMALL as a GPT-2 in a published folder, which the reference library is not asked for."""
    from models.loading.export import export_checkpoint

    ids: Any = {"pad_id": None, "bos_id": 1, "generation": GenerationConfig.ending_with(1)}
    has: Any = {"head_bias": False, "tie_embeddings": True, "scale_embedding": False}
    config = SMALL.replace(positions="learned", activation="gelu-tanh", **ids, **has)
    export_checkpoint(folder, shaken(config, torch.float32))


def million_positions(folder: Path) -> "OpenModel":
    """A Llama that reads a million positions, each letter as ninety tokens."""
    from explorer.catalog import available_models, opened_model
    from models.loading.export import export_checkpoint
    from tests.text.published import hostile_tokenizers

    kinds: Any = {"positions": "rotary", "pairs": "halves", "norm": "rms", "activation": "silu"}
    has: Any = {"gated": True, "bias": False, "qkv_bias": False, "scale_embedding": False}
    sizes: Any = {"vocab_size": 4, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 16}
    llama = TransformerConfig(**sizes, **kinds, **has, max_len=1_000_000)
    ninety = hostile_tokenizers.replace({"String": "a"}, " b" * 90)
    tokenizer = hostile_tokenizers.words(normalizer=ninety)
    export_checkpoint(folder, Transformer(llama), tokenizer)
    return opened_model.open_entry(available_models.brought_model(folder))


# ---- folders of the reference library --------------------------------------------------

BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT_WORDS = (
    "the capital of france is paris . she opened door with her key hand a man who sold world "
    "he saw cat dog and it was not good"
).split()
BERT_TOKENS = [
    *BERT_SPECIAL, *BERT_WORDS, *"abcdefghijklmnopqrstuvwxyz?,!'", *map("##{}".format, "aeglnrst"),
]  # fmt: skip
BERT = {
    "vocab_size": len(BERT_TOKENS),
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
GPT2 = {
    "vocab_size": 50,
    "n_positions": 32,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 3,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As SmolLM2 and Qwen have it."""


def reference() -> Any:
    """The reference library, which fetches nothing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    return transformers


def save_reference(
    folder: Path, name: str, config: Mapping[str, Any], seed: int = 0, largest: str = "1GB"
) -> Path:
    """The shaken model of this class of the reference library, in files of at most this size."""
    kind = getattr(reference(), name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(kind.config_class(**config))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.save_pretrained(folder, max_shard_size=largest)
    return folder


def save_reference_models(folder: Path) -> Path:
    """Folders called bert, gpt2, t5 and torn; the weights of the last one end too early."""
    reference_bert(folder / "bert")
    reference_gpt2(folder / "gpt2")
    reference_t5(folder / "t5")
    weights = reference_gpt2(folder / "torn") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    return folder


def reference_bert(folder: Path, seed: int = 0, head: str = "MaskedLM", **sizes: Any) -> Path:
    """A masked language model that tells two sentences apart, with its tokenizer.json."""
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, processors

    from tests.text.published.tokenizer_folders import settings

    save_reference(folder, f"BertFor{head}", BERT | sizes, seed)
    numbered = {token: number for number, token in enumerate(BERT_TOKENS)}
    library = tokenizers.Tokenizer(models.WordPiece(numbered, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    library.add_special_tokens(BERT_SPECIAL)
    library.save(str(folder / "tokenizer.json"))
    settings(folder, tokenizer_class="BertTokenizer", mask_token="[MASK]", pad_token="[PAD]")
    return folder


def reference_classifier(folder: Path) -> Path:
    """The same family as a classifier whose config names its two classes."""
    classes = {"gloomy": 0, "cheerful": 1}
    sizes: dict[str, Any] = {"num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"label2id": classes, "id2label": {n: name for name, n in classes.items()}}
    return reference_bert(folder, head="SequenceClassification", **sizes)


def reference_gpt2(folder: Path, seed: int = 0, shards: bool = False, **sizes: int) -> Path:
    """A decoder without any file of a tokenizer."""
    largest = "20KB" if shards else "1GB"
    return save_reference(folder, "GPT2LMHeadModel", GPT2 | sizes, seed, largest)


def chat_gpt2(
    folder: Path,
    template: str = CHATML,
    special: Sequence[str] = ("<|im_start|>", "<|im_end|>"),
    **sizes: int,
) -> Path:
    """One that reads any bytes, and comes with a chat template."""
    from tests.text.published.tokenizer_folders import byte_level

    read: dict[str, Any] = {"vocab_size": 400, "n_positions": 256, **sizes}
    reference_gpt2(folder, **read)
    named = {"additional_special_tokens": [*special], "chat_template": template}
    byte_level(folder, ["<|endoftext|>", *special], tokenizer_class="GPT2Tokenizer", **named)
    return folder


def long_gpt2(folder: Path) -> Path:
    """One that reads 2,048 tokens, with twelve layers of twelve heads, and chats."""
    template = "{% for message in messages %}{{ message.content }}<|endoftext|>\n{% endfor %}"
    return chat_gpt2(folder, template, (), n_positions=2_048, n_layer=12, n_head=12)


def reference_t5(folder: Path) -> Path:
    """An encoder-decoder with relative positions and a sentencepiece tokenizer."""
    from tests.text.published.tokenizer_folders import FOLDERS

    sizes = {"vocab_size": 300, "d_model": 24, "d_kv": 8, "d_ff": 40, "num_layers": 2}
    config = {**sizes, "num_heads": 3, "decoder_start_token_id": 0}
    save_reference(folder, "T5ForConditionalGeneration", config)
    FOLDERS["t5"][2](folder)
    return folder


# ---- runs ------------------------------------------------------------------------------

RUN_TEXT = "the cat and the hat " * 300


def tiny_spec(name: str = "reverse", **training: Any) -> "RunSpec":
    """A task with a model small enough for two milliseconds a step, and dropout."""
    from explorer.runs.spec import RunSpec
    from explorer.tasks import TASKS

    task = TASKS[name]
    sizes: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 16}
    if task.model.kind == "encoder-decoder":
        sizes["n_encoder_layers"] = 1
    model = task.model.replace(**sizes, dropout=0.1)
    settings: dict[str, Any] = {"steps": 12, "batch_size": 4, "warmup": 3, **training}
    return RunSpec(name, model, task.training.replace(**settings), weights_seed=5)


def has_run_for_long(root: Path) -> None:
    """A server has looked after what lies in this folder since 1970, and does so now."""
    (root / ".ran.json").write_text(json.dumps([[0, time.time()]]))


def tiny_run(
    root: Path, stop_at: float | None = None, task: str = "reverse", **training: Any
) -> "Run":
    from explorer.runs.run import create

    return create(root, replace(tiny_spec(task, **training), stop_at=stop_at))


def trained_run(root: Path, **settings: Any) -> "Run":
    """At its end, with snapshots 0, 1, 2, 3, 5, 7, 10 and 12; the second of a process is a copy."""
    run = tiny_run(root, **settings)
    trained, _ = _trained(json.dumps(settings, sort_keys=True))
    shutil.copytree(trained, run.folder, dirs_exist_ok=True, ignore=lambda *_: ["spec.json"])
    for record in run.folder.rglob("run.json"):
        record.write_text(record.read_text().replace(trained.name, run.name))
    return run


@cache
def _trained(settings: str) -> tuple[Path, TemporaryDirectory[str]]:
    from explorer.runs.worker import train_to_end

    root = TemporaryDirectory()
    folder = tiny_run(Path(root.name), **json.loads(settings)).folder
    assert train_to_end(folder) == "done"
    return folder, root


def labelled_table(labels: tuple[str, ...] = ("good", "bad")) -> str:
    """Sentences in the words of the small models here, each with a label."""
    rows = [
        f"the {a} {b} {c} {d},{labels[n % len(labels)]}"
        for a in ("black", "white")
        for b in ("cat", "dog")
        for c in ("sleeps", "eats", "does")
        for n, d in enumerate(("the", "a", "cat", "dog", "not"))
    ]
    return "text,label\n" + "\n".join(rows)


def tuned_run(
    root: Path, opened: "OpenModel", task: str = "subwords", text: str = RUN_TEXT, **settings: Any
) -> "Run":
    from explorer.runs.finetuning import finetune_spec, task_for
    from explorer.runs.run import create

    usual = {"steps": 6, "batch_size": 2, "warmup": 1, "lr": 0.01}
    spec = finetune_spec(opened, task_for(opened, task, text), usual | settings)
    return create(root, spec, text, parent=opened)
