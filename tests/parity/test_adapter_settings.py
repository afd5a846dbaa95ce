"""Every field of peft's LoraConfig with other values: as peft reads it, or refused by its name."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig, PeftModel, get_peft_model

from models.loading.adapter_settings import WITHOUT_EFFECT
from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.export import export_checkpoint
from models.loading.safe_files import ADAPTER_CONFIG
from models.model import Transformer
from tests.closeness import assert_close_to
from tests.parity.test_adapters import answers
from tests.parity.test_config_fuzz import EQUAL, REFUSED, attempt, others
from tests.parity.test_export import AUTO, OURS
from tests.tiny import shake

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


def renamed(values: Any, names: Mapping[str, str]) -> Any:
    text = json.dumps(values)
    for ours, theirs in names.items():
        text = text.replace(ours, theirs)
    return json.loads(text)


class Adapters:
    """A model with adapters of peft beside its files, and both ways to open them."""

    def __init__(self, family: str, place: Path) -> None:
        self.config = OURS[family].replace(dropout=0.0, tie_embeddings=False)
        self.names = {"gpt2": GPT2, "bert": BERT}.get(family, {})
        self.usual = renamed(USUAL, self.names)
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
            values = renamed(values, self.names)
            shutil.rmtree(self.adapter, ignore_errors=True)
            if is_made:
                if attempt(self.save, values)[1]:
                    continue  # peft makes no such adapter
            else:
                shutil.copytree(self.sound, self.adapter)
                path = self.adapter / ADAPTER_CONFIG
                path.write_text(json.dumps(json.loads(path.read_text()) | values))
            if fault := self.fault(values):
                yield f"{'made' if is_made else 'written'} {values}: {fault}"


def changes() -> list[tuple[bool, Values]]:
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
    faults = [*adapters.faults(changes())]
    print(f"{family}: {dict(adapters.counts)}")
    assert faults == []


def test_no_setting_of_a_few_is_read_otherwise(tmp_path: Path) -> None:
    few = [*((True, values) for values in TOGETHER), *changes()[::STEP]]
    adapters = Adapters("llama", tmp_path)
    assert [*adapters.faults(few)] == []
    assert adapters.counts[EQUAL] > len(TOGETHER)
