"""An adapter_config.json that is not trusted, read as the peft library reads it.

Every setting is followed, or has no effect on a saved adapter, or is refused by its name, as is
one that is not known here.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Any

from models.loading.module_patterns import Patterns
from models.loading.safe_files import ADAPTER_CONFIG, CheckpointError, quoted

FOLLOWED = {
    *("peft_type", "task_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern"),
    *("target_modules", "exclude_modules", "modules_to_save", "init_lora_weights"),
    *("layers_to_transform", "layers_pattern", "bias"),
}
WITHOUT_EFFECT = {
    *("auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode"),
    *("lora_dropout", "fan_in_fan_out", "qalora_group_size", "megatron_core", "runtime_config"),
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config"),
}
"""Settings that name the model, or tell how an adapter is trained or made before its training."""
INITIALIZATIONS = (True, False, None, "gaussian", "orthogonal", "eva", "lora_ga")
"""Those that leave the model's own matrices as they are."""
CLASSIFIER_HEADS = ("classifier", "score")
"""The modules that the library saves whole of a classifier without being told to."""
TASKS = (None, "CAUSAL_LM", "SEQ_2_SEQ_LM", "FEATURE_EXTRACTION", "SEQ_CLS")
LARGEST_ALPHA = 1e6
MOST_NAMES = 2_000


class AdapterSettings:
    """The settings of an adapter in the folder of this title."""

    def __init__(self, values: Mapping[str, Any], folder: str) -> None:
        self._values, self._what = values, f"{ADAPTER_CONFIG} in {folder}"
        if values.get("peft_type") != "LORA":
            self._refuse("peft_type", values.get("peft_type"))
        for name, value in values.items():
            if name not in FOLLOWED | WITHOUT_EFFECT and not (value is None or value is False):
                self._refuse(name)
        first = values.get("init_lora_weights", True)
        if not any(
            first is way or (type(first) is str and first == way) for way in INITIALIZATIONS
        ):
            self._refuse("init_lora_weights", first)
        if values.get("bias", "none") != "none":
            self._refuse("bias", values["bias"])
        if values.get("task_type") not in TASKS:
            self._refuse("task_type", values["task_type"])
        self._patterns = Patterns()
        self._ranks, self._alphas = self._mapping("rank_pattern"), self._mapping("alpha_pattern")
        self._targets = self._names("target_modules")
        self._excluded = self._names("exclude_modules")
        saved = self._names("modules_to_save")
        layers = self._names("layers_pattern")
        self._layers = [layers] if isinstance(layers, str) and layers else layers
        if isinstance(saved, str):
            self._refuse("modules_to_save", saved)
        self._saved = [*saved, *(CLASSIFIER_HEADS if values.get("task_type") == "SEQ_CLS" else ())]
        is_all = isinstance(self._targets, str) and self._targets.lower() == "all-linear"
        if not self._targets or is_all:
            self._refuse("target_modules", self._targets)
        self._numbers = values.get("layers_to_transform")
        numbers = self._numbers if isinstance(self._numbers, list) else [self._numbers]
        if not all(type(number) is int for number in numbers) and self._numbers is not None:
            self._refuse("layers_to_transform", self._numbers)
        if isinstance(self._targets, str) and self._numbers is not None:
            self._refuse("layers_to_transform", self._numbers)
        if self._layers and self._numbers is None:
            self._refuse("layers_pattern", self._layers)

    def _refuse(self, name: str, value: object = None) -> None:
        what = quoted(name) if value is None else f"{quoted(name)} {quoted(value)}"
        raise CheckpointError(f"{self._what} asks for {what}, which is not supported.")

    def _mapping(self, name: str) -> dict[str, Any]:
        value = self._values.get(name) or {}
        if not isinstance(value, dict) or len(value) > MOST_NAMES:
            raise CheckpointError(f"{self._what} has no readable {name}.")
        return value

    def _names(self, name: str) -> str | list[str]:
        """A pattern, or a list of names; empty where there is neither."""
        value = self._values.get(name) or []
        if isinstance(value, str):
            return value
        is_list = isinstance(value, list) and len(value) <= MOST_NAMES
        if not is_list or not all(isinstance(part, str) and part for part in value):
            raise CheckpointError(f"{self._what} has no readable {name}.")
        return list(value)

    def _matches(self, setting: str, pattern: str, name: str) -> bool:
        try:
            return self._patterns.matches(pattern, name)
        except ValueError as error:
            raise CheckpointError(
                f"{self._what} has the pattern {quoted(pattern)} in {setting}, which is not "
                "readable here or takes too long."
            ) from error

    def _is_named(self, setting: str, names: str | list[str], module: str) -> bool:
        if isinstance(names, str):
            return bool(names) and self._matches(setting, names, module)
        return any(f".{module}".endswith(f".{name}") for name in names)

    def _left_out_by(self, module: str) -> str | None:
        """The setting by which the library gives this module no adapter; None where it does."""
        if self._is_named("exclude_modules", self._excluded, module):
            return "exclude_modules"
        for name in self._saved:
            if self._matches("modules_to_save", rf"(^|.*\.){name}($|\..*)", module):
                return "modules_to_save"
        if not self._is_named("target_modules", self._targets, module):
            return "target_modules"
        if self._numbers in (None, []) or module in self._targets:
            return None
        numbers = self._numbers if isinstance(self._numbers, list) else [self._numbers]
        return None if self._layer(module) in numbers else "layers_to_transform"

    def _layer(self, module: str) -> int | None:
        """The first number in the name, after a name that `layers_pattern` allows."""
        parts = module.split(".")
        for i, part in enumerate(parts[1:-1], 1):
            before = ".".join(parts[:i])
            lists = [rf"(.*\.)?{name}" for name in self._layers] or [r".*\.[^.]*"]
            if part.isdecimal() and any(
                self._matches("layers_pattern", name, before) for name in lists
            ):
                return int(part)
        return None

    def _is_saved(self, parameter: str) -> bool:
        """Whether the library takes it from the file as a part of a module that was saved whole."""
        return any(module.endswith(tuple(self._saved)) for module in _around(parameter))

    def check(self, parameter: str, is_matrix: bool, adapted: Set[str], whole: Set[str]) -> None:
        """CheckpointError unless the file has what the settings name of this weight."""
        if self._saved and self._is_saved(parameter) and parameter not in whole:
            raise CheckpointError(
                f"{self._what} names {quoted(parameter)} in modules_to_save, which is not in the "
                "file of the adapter."
            )
        module = parameter.rpartition(".")[0]
        is_adapted = module in adapted and parameter.endswith(".weight")
        by = self._left_out_by(module) if is_matrix else None
        if is_matrix and (by is None) is not is_adapted:
            does = (
                f"names {quoted(module)} in target_modules"
                if by is None
                else (f"leaves out {quoted(module)} by {by}")
            )
            lacks = "lacks" if by is None else "has"
            raise CheckpointError(f"{self._what} {does}, which the file of the adapter {lacks}.")

    def alpha(self, module: str, rank: int) -> float:
        """α of a module whose matrices have this rank; the first pattern that matches counts."""
        stated = self._of(self._ranks, "rank_pattern", module, self._values.get("r", 8))
        if type(stated) is not int or stated != rank:
            raise CheckpointError(
                f"{self._what} gives {quoted(module)} another rank, by r or rank_pattern, than its "
                f"matrices have, which is {rank}."
            )
        default = self._values.get("lora_alpha", 8)
        alpha = self._of(self._alphas, "alpha_pattern", module, default)
        if type(alpha) not in (int, float) or not 0 < abs(alpha) <= LARGEST_ALPHA:
            raise CheckpointError(
                f"{self._what} has no lora_alpha or alpha_pattern that can be calculated with."
            )
        return float(alpha * rank**0.5 if self._values.get("use_rslora") else alpha)

    def _of(self, patterns: Mapping[str, Any], setting: str, module: str, default: Any) -> Any:
        for pattern, value in patterns.items():
            if self._matches(setting, rf"(.*\.)?({pattern})$", module):
                return value
        return default


def _around(parameter: str) -> Iterator[str]:
    """The modules around a parameter, the innermost first."""
    module = parameter.rpartition(".")[0]
    while module:
        yield module
        module = module.rpartition(".")[0]
