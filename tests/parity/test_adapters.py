"""LoRA adapters as files: the peft library loads what we write, and we what it saves.

Every field of its LoraConfig with other values is read as there, or refused by its name.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from explorer.catalog.tokenizers import tokenizer_in
from explorer.text import word_tokenizer
from models.config import TransformerConfig
from models.loading.adapter_files import ADAPTER_WEIGHTS
from models.loading.adapter_settings import WITHOUT_EFFECT
from models.loading.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from models.loading.checkpoint_tokenizer import CHAT_TEMPLATE, chat_template
from models.loading.export import export_adapter, export_checkpoint
from models.loading.inspection import inspect_folder
from models.loading.safe_files import ADAPTER_CONFIG, TOKENIZER
from models.lora import add_lora, lora_leaves, merged, target_ranks
from models.model import Transformer
from tests.closeness import assert_close_to
from tests.parity.test_config_fuzz import EQUAL, REFUSED, attempt, others
from tests.parity.test_export import AUTO, OURS
from tests.tiny import assert_equal_weights, ids_of, shake, weights


def adapted(config: TransformerConfig, targets: Sequence[str], rank: int = 2) -> Transformer:
    model = shake(Transformer(config), 0.1)
    whole = ("head",) if config.head == "classifier" else ()
    add_lora(model, rank, 6.0, targets, whole=whole)
    for leaf in lora_leaves(model).values():
        shake(leaf.lora_B, seed=leaf.out_features)
    return model.eval()


def answers(model: Any, config: TransformerConfig) -> torch.Tensor:
    with torch.no_grad():
        found = model(ids_of(3, 9, config.vocab_size))
    return found if isinstance(found, torch.Tensor) else found.logits


def parent_of(model: Transformer) -> Transformer:
    """The model without its adapters."""
    plain = deepcopy(model)
    for name, leaf in lora_leaves(plain).items():
        plain.set_submodule(name, leaf.base)
    return plain


def together(folder: Path, adapter: Path, to: Path) -> Path:
    """The files of a model and those of its adapter in one folder."""
    shutil.copytree(folder, to)
    shutil.copytree(adapter, to, dirs_exist_ok=True)
    return to


@pytest.mark.parametrize("family", OURS)
def test_peft_loads_what_we_write(family: str, tmp_path: Path) -> None:
    """Every matrix that can have one; those that a file holds together, one by one and all."""
    config = OURS[family].replace(dropout=0.0)
    every = tuple(target_ranks(config))
    for number, targets in enumerate((("q_proj", "v_proj"), every)):
        model = adapted(config, targets)
        folder, adapter = tmp_path / f"{number}", tmp_path / f"{number}-adapter"
        export_checkpoint(folder, parent_of(model))
        assert export_adapter(adapter, model, "the parent") == family
        reference = AUTO[config.head].from_pretrained(folder, local_files_only=True).eval()
        theirs = PeftModel.from_pretrained(reference, str(adapter)).eval()
        expected = answers(model, config)
        assert_close_to(answers(theirs, config), expected)
        both = together(folder, adapter, tmp_path / f"{number}-both")
        assert_close_to(answers(load_checkpoint(both).model, config), expected)


@pytest.mark.parametrize("family", OURS)
def test_an_adapter_brings_the_head_of_a_classifier(family: str, tmp_path: Path) -> None:
    """To a language model, as peft saves it and as we do; the adapter alone names its model."""
    config = OURS[family].replace(dropout=0.0)
    classes: dict[str, Any] = {"head": "classifier", "n_classes": 3}
    if family == "bert":
        classes |= {"d_classifier": 24, "classifier_activation": "tanh"}
    model = adapted(config.replace(**classes), ("q_proj", "v_proj"))
    body = shake(Transformer(config), 0.1)
    body.load_state_dict(parent_of(model).state_dict(), strict=False)
    folder, adapter = tmp_path / "model", tmp_path / "adapter"
    export_checkpoint(folder, body)
    export_adapter(adapter, model, str(folder))
    reference = AUTO["classifier"].from_pretrained(folder, num_labels=3, local_files_only=True)
    theirs = PeftModel.from_pretrained(reference, str(adapter)).eval()
    theirs.save_pretrained(str(tmp_path / "again"))
    expected = answers(model, config)
    assert_close_to(answers(theirs, config), expected)
    both = together(folder, tmp_path / "again", tmp_path / "both")
    for place in (adapter, both):
        ours = load_checkpoint(place)
        assert ours.run == {"classes": ["LABEL_0", "LABEL_1", "LABEL_2"]}
        assert_close_to(answers(ours.model, config), expected)
    replaced(lambda file: [file.pop(n) for n in [*file] if "lora" not in n and "pool" in n])(both)
    if family == "bert":
        with pytest.raises(CheckpointError, match="neither of them holds pooler"):
            load_checkpoint(both)
    replaced(lambda file: [file.pop(n) for n in [*file] if "lora" not in n])(both)
    with pytest.raises(CheckpointError, match="SEQ_CLS, but its file holds no head"):
        load_checkpoint(both)
    changed(task_type="TOKEN_CLS")(both)
    with pytest.raises(CheckpointError, match="TOKEN_CLS, which is not supported"):
        load_checkpoint(both)


def test_an_adapter_alone_has_a_model_beside_it_and_its_own_tokenizer(tmp_path: Path) -> None:
    """The model is named by its ID; with no words of its own the adapter has the model's."""
    model = adapted(OURS["gpt2"], ("q_proj",))
    first, second = (word_tokenizer([word]).to_json() for word in ("one", "two"))
    export_checkpoint(tmp_path / "model", parent_of(model), first)
    export_adapter(tmp_path / "adapter", model, "someone/model")
    opened = load_checkpoint(tmp_path / "adapter")
    assert opened.folder == tmp_path / "model"
    assert (opened.tokenizer and opened.tokenizer.text) == first
    (tmp_path / "adapter" / TOKENIZER).write_text(second)
    (tmp_path / "adapter" / CHAT_TEMPLATE).write_text("{{ messages }}")
    opened = load_checkpoint(tmp_path / "adapter")
    assert (opened.tokenizer and opened.tokenizer.text) == second
    assert chat_template(tmp_path / "adapter") == "{{ messages }}"
    assert tokenizer_in(tmp_path / "adapter", "gpt2", opened.config).encode("two")
    stored = load_file(tmp_path / "adapter" / ADAPTER_WEIGHTS)
    stored |= {MODEL + "lm_head.weight": torch.ones(29, 24)}
    save_file(stored, tmp_path / "adapter" / ADAPTER_WEIGHTS)
    with pytest.raises(CheckpointError, match=r"lm_head.* is one of two tied tables"):
        load_checkpoint(tmp_path / "adapter")


@pytest.mark.parametrize("wrapper", ["_orig_mod.", "module.", "base_model.model."])
def test_a_prefix_of_every_name_is_read_through(wrapper: str, tmp_path: Path) -> None:
    model = shake(Transformer(OURS["llama"].replace(dropout=0.0)), 0.1)
    export_checkpoint(tmp_path, model)
    file = tmp_path / "model.safetensors"
    save_file({wrapper + name: tensor for name, tensor in load_file(file).items()}, file)
    assert_equal_weights(weights(load_checkpoint(tmp_path).model), weights(model))
    assert inspect_folder(tmp_path).weights.wrapper == wrapper


def folder_of(model: Transformer, place: Path) -> Path:
    """A checkpoint of ours: the parent's weights, which are linked, and the adapters beside."""
    save_checkpoint(place / "parent", parent_of(model))
    linked = [place / "parent" / "model.safetensors"]
    save_checkpoint(place / "step", model, linked=linked)
    return place / "step"


def test_a_checkpoint_holds_the_adapters_alone(tmp_path: Path) -> None:
    """It opens merged, or as it was; its parent's weights take no room and may be gone."""
    config = OURS["gpt2"].replace(head="classifier", dropout=0.0)
    model = adapted(config, ("q_proj", "up_proj"))
    folder = folder_of(model, tmp_path)
    assert (folder / "model.safetensors").stat().st_nlink == 2
    assert json.loads((folder / ADAPTER_CONFIG).read_text())["modules_to_save"] == ["head.out"]
    shutil.rmtree(tmp_path / "parent")
    again = load_checkpoint(folder, merging=False).model
    assert_equal_weights(weights(again), weights(model))
    trained = {name for name, each in model.named_parameters() if each.requires_grad}
    assert {name for name, each in again.named_parameters() if each.requires_grad} == trained
    assert_equal_weights(weights(load_checkpoint(folder).model), weights(merged(model)))
    save_checkpoint(tmp_path / "plain", model)
    assert_equal_weights(weights(load_checkpoint(tmp_path / "plain").model), weights(merged(model)))


Change = Callable[[Path], object]


def changed(**values: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / ADAPTER_CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def replaced(change: Callable[[dict[str, torch.Tensor]], object]) -> Change:
    def replace(folder: Path) -> None:
        tensors = load_file(folder / ADAPTER_WEIGHTS)
        change(tensors)
        save_file(tensors, folder / ADAPTER_WEIGHTS)

    return replace


def added(**sizes: tuple[int, int]) -> Change:
    """With tensors of ones of these names and sizes."""
    ones = {name: torch.ones(size) for name, size in sizes.items()}
    return replaced(lambda file: file.update(ones))


MODEL = "base_model.model."
A_NAME = MODEL + "decoder.blocks.0.self_attn.q_proj.lora_A.weight"
WRONG: list[tuple[Change, str]] = [
    (changed(lora_alpha=0), "no lora_alpha"),
    (lambda folder: (folder / ADAPTER_CONFIG).write_text("["), "not readable"),
    (lambda folder: (folder / ADAPTER_WEIGHTS).unlink(), "is missing"),
    (lambda folder: (folder / ADAPTER_WEIGHTS).write_bytes(b"\x00" * 20), "damaged"),
    (replaced(lambda file: file.pop(A_NAME)), "which the file of the adapter lacks"),
    (added(**{MODEL + "x.lora_A.weight": (1, 1)}), "of no weight of this model"),
    (added(**{A_NAME: (2, 25)}), "does not adapt a matrix of the shape"),
    (added(**{A_NAME: (0, 24)}), "does not adapt a matrix"),
    (replaced(lambda file: file[A_NAME].fill_(torch.inf)), "infinite"),
    (added(**{MODEL + "decoder.embedding.lora_embedding_A": (2, 29)}), "adapts an embedding"),
    (added(**{MODEL + "decoder.embedding.weight": (31, 24)}), r"the model's is \(29, 24\)"),
    (lambda folder: (folder / ADAPTER_WEIGHTS).rename(folder / "adapter_model.bin"), "pickled"),
    (changed(strange=[3]), "asks for strange"),
    (changed(alpha_pattern={"(": 3}), "in alpha_pattern, which is not readable"),
    (changed(target_modules="(.*.*)*" * 500), "takes too long"),
    (changed(r=3), "another rank, by r or rank_pattern"),
    (changed(target_modules=["q_proj"]), "leaves out .* by target_modules"),
]
"""Also a stranger's tensor, one that is too wide, one of no rank, and those of an embedding."""


def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    model = adapted(OURS["llama"].replace(dropout=0.0), ("q_proj", "v_proj"))
    sound = folder_of(model, tmp_path)
    for number, (change, sentence) in enumerate(WRONG):
        with subtests.test(sentence, number=number):
            folder = Path(shutil.copytree(sound, tmp_path / str(number)))
            change(folder)
            with pytest.raises(CheckpointError, match=sentence) as caught:
                load_checkpoint(folder)
            assert str(tmp_path) not in str(caught.value)


def test_a_model_without_adapters_has_none_to_write(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no LoRA adapter"):
        export_adapter(tmp_path / "out", Transformer(OURS["gpt2"]))
    model = adapted(OURS["gpt2"].replace(positions="sinusoidal"), ("q_proj",))
    with pytest.raises(CheckpointError, match="No published model family"):
        export_adapter(tmp_path / "out", model)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    with pytest.raises(CheckpointError, match="other files"):
        export_adapter(tmp_path / "full", adapted(OURS["gpt2"], ("q_proj",)))
    export_adapter(tmp_path / "out", adapted(OURS["gpt2"], ("q_proj",)))
    with pytest.raises(CheckpointError, match="one folder"):
        load_checkpoint(tmp_path / "out")


Values = dict[str, Any]
USUAL: Values = {"r": 6, "lora_alpha": 5, "target_modules": ["q_proj", "v_proj"]}
FIELDS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("lora_fields.json").read_text())
"""Values of every field that a newer peft may have too: one that is not here fails the test."""
TOGETHER: list[Values] = [
    {"rank_pattern": {r"^model\.layers\.0\..*": 2, "v_proj": 4}, "use_rslora": True},
    {"exclude_modules": r".*\.1\..*", "init_lora_weights": "gaussian", "alpha_pattern": {"v": 2}},
    {"layers_to_transform": [0, 2], "layers_pattern": "layers", "init_lora_weights": False},
    {"layers_to_transform": 1, "modules_to_save": ["norm"], "init_lora_weights": "orthogonal"},
    {"modules_to_save": ["k_proj", "lm_head"], "lora_dropout": 0.5, "fan_in_fan_out": True},
]
CHOICE = "target_modules modules_to_save lm_head embed_tokens wte word_embeddings decoder".split()
"""What a refusal may name where a field of them, or that narrows the first, is changed."""
NARROWING = ("exclude_modules", "layers_to_transform", "layers_pattern", *CHOICE)
GPT2 = {
    "q_proj": "c_attn", "v_proj": "c_proj", "layers": "h", "self_attn": "attn", "norm": "ln_f",
    "model.": "transformer.", "embed_tokens": "wte", "Q_PROJ": "C_ATTN", "down_proj": "c_fc",
}  # fmt: skip
BERT = {
    "q_proj": "query", "v_proj": "value", "layers": "layer", "self_attn": "attention.self",
    "norm": "LayerNorm", "model.": "bert.encoder.", "embed_tokens": "word_embeddings",
    "lm_head": "decoder", "down_proj": "output.dense", "k_proj": "key",
}  # fmt: skip
STEP = 23
"""Between the changes that the quick run tries."""


def in_family(values: Any, names: Mapping[str, str]) -> Any:
    text = json.dumps(values)
    for ours, theirs in names.items():
        text = text.replace(ours, theirs)
    return json.loads(text)


class Adapters:
    """A model with adapters of peft beside its files, and both ways to open them."""

    def __init__(self, family: str, place: Path) -> None:
        self.config = OURS[family].replace(dropout=0.0, tie_embeddings=False)
        self.names = {"gpt2": GPT2, "bert": BERT}.get(family, {})
        self.usual = in_family(USUAL, self.names)
        self.base, self.adapter, self.both = (place / n for n in ("base", "adapter", "both"))
        export_checkpoint(self.base, shake(Transformer(self.config), 0.1))
        shutil.copytree(self.base, self.both)
        self.model = AUTO[self.config.head].from_pretrained(self.base, local_files_only=True)
        self.counts: Counter[str] = Counter()
        self.save({})
        self.adapter.rename(place / "usual")
        self.sound = place / "usual"

    def save(self, values: Values) -> None:
        """What peft makes and saves with these settings; raises what peft raises."""
        made = get_peft_model(deepcopy(self.model), LoraConfig(**self.usual | values))
        shake(made, 0.1).save_pretrained(str(self.adapter))

    def theirs(self) -> Any:
        return answers(PeftModel.from_pretrained(deepcopy(self.model), self.adapter), self.config)

    def fault(self, changed: Values) -> str:
        """What is wrong with our reading of the adapter that is saved, which may be nothing."""
        shutil.copytree(self.adapter, self.both, dirs_exist_ok=True)
        expected, why = attempt(self.theirs)
        ours, said = attempt(load_checkpoint, self.both)
        if ours is None:
            self.counts[REFUSED] += 1
            words = [*changed, *(CHOICE if not changed.keys().isdisjoint(NARROWING) else ())]
            kind, _, sentence = said.partition(": ")
            is_plain = kind == CheckpointError.__name__ and sentence.endswith(".")
            return "" if is_plain and any(word in sentence for word in words) else said
        if expected is None:
            is_off = all(value is None or value is False for value in changed.values())
            is_idle = is_off or changed.keys() <= WITHOUT_EFFECT
            return "" if is_idle else f"ours alone, {why[:200]}"
        self.counts[EQUAL] += 1
        return attempt(assert_close_to, answers(ours.model, self.config), expected)[1]

    def faults(self, changes: list[tuple[bool, Values]]) -> Iterator[str]:
        """For each change: made by peft with it, or with it written into what is made without."""
        for is_made, values in changes:
            values = in_family(values, self.names)
            shutil.rmtree(self.adapter, ignore_errors=True)
            if is_made:
                if attempt(self.save, values)[1]:
                    continue  # peft makes no such adapter
            else:
                shutil.copytree(self.sound, self.adapter)
                changed(**values)(self.adapter)
            if fault := self.fault(values):
                yield f"{'made' if is_made else 'written'} {values}: {fault}"


def changes_of_settings() -> list[tuple[bool, Values]]:
    usual = LoraConfig().to_dict() | USUAL
    made = [(True, {name: value}) for name, values in FIELDS.items() for value in values]
    written = [
        (False, {name: value})
        for name, values in FIELDS.items()
        for value in (*values, *others(name, usual.get(name)))
    ]
    return made + written


def test_no_field_of_peft_is_undecided() -> None:
    assert FIELDS.keys() == {field.name for field in fields(LoraConfig)}


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["llama", "gpt2", "bert"])
def test_no_setting_is_read_otherwise(family: str, tmp_path: Path) -> None:
    adapters = Adapters(family, tmp_path)
    faults = [*adapters.faults(changes_of_settings())]
    print(f"{family}: {dict(adapters.counts)}")
    assert faults == []


def test_no_setting_of_a_few_is_read_otherwise(tmp_path: Path) -> None:
    few = [*((True, values) for values in TOGETHER), *changes_of_settings()[::STEP]]
    adapters = Adapters("llama", tmp_path)
    assert [*adapters.faults(few)] == []
    assert adapters.counts[EQUAL] > len(TOGETHER)
