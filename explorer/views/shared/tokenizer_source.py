"""The training text of a tokenizer and the number of tokens that the training adds."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.app import address
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.controls import PERSISTENT, one_of
from explorer.app.session import state_of
from explorer.inference import trained_tokenizers
from explorer.inference.trained_tokenizers import TEXTS
from explorer.system import limits
from explorer.text import TextError
from explorer.text.bpe_training import BPE, WORDPIECE
from explorer.text.checked_text import BYTES_OF_CHARACTER, checked, decoded
from explorer.text.unigram import UNIGRAM
from explorer.text.visible_text import cut

ALGORITHMS = (BPE, WORDPIECE, UNIGRAM)
OWN, FILE = "Your own text", "A text file"
NAMES = (*TEXTS, OWN, FILE)
SIZES_OFFERED = ("20", "50", "100", "200", "500", "1000")
FIRST_SIZE = "100"
TEXT_WIDTH, MOST_WIDTH = 315, 262
MOST_EXPORTED = 400
"""Characters of a training text in an exported file."""


@dataclass
class TrainingFile:
    """The uploaded training text, which no address holds."""

    upload: str = ""
    text: str = ""


def chosen_training() -> tuple[str, int]:
    """The text and the most new tokens, for a page without these controls, and in its address."""
    (name, most), own = _chosen_name_and_most(), _chosen("learn_own", "")
    if name == OWN:
        return _checked_own(own), most
    return _uploaded_text() if name == FILE else trained_tokenizers.shipped_text(name), most


def training_summary() -> str:
    """The choices of `chosen_training` in a sentence."""
    name, most = _chosen_name_and_most()
    return (
        f"Trained here: on “{name}”, with at most {most} new "
        "tokens. No special tokens are added; what the vocabulary does not cover is unknown."
    )


def text_for_export(text: str) -> str:
    """The training text; of a long one the start and the end, and its length."""
    if len(text) <= MOST_EXPORTED:
        return text
    return f"{cut(text, MOST_EXPORTED)} ({len(text):,} characters, without the middle here)"


def _chosen_name_and_most() -> tuple[str, int]:
    """The first option in place of one that does not exist."""
    name, most = _chosen("learn_from", TEXTS[0]), _chosen("learn_rules", FIRST_SIZE)
    return name if name in NAMES else TEXTS[0], int(most if most in SIZES_OFFERED else FIRST_SIZE)


def _chosen(key: str, first: str) -> str:
    value = address.current_value(key) or first
    if value != first and address.value_of(key) != value:
        address.write(key, value)
    return value


def text_of(name: str) -> str:
    """The training text of this name. Raises TextError, which says why there is none."""
    if name == OWN:
        hint = "Type or paste a text; upload a longer one as a file"
        how: Any = {"persist_state": "session", **address.bound("learn_own")}
        typed = st.text_area(placeholder=hint, **how)
        return _checked_own(str(typed or ""))
    return _choose_file() if name == FILE else trained_tokenizers.shipped_text(name)


def choose_training() -> tuple[str, str, int]:
    """The algorithm, the name of the training text, and the most rules that are learned."""
    how: Any = {"as_list": True, **PERSISTENT}
    algorithm = one_of("learn_how", ALGORITHMS, **PERSISTENT)
    name = one_of("learn_from", NAMES, width=TEXT_WIDTH, **how)
    most = one_of("learn_rules", SIZES_OFFERED, FIRST_SIZE, width=MOST_WIDTH, **how)
    return algorithm, name, int(most)


def _checked_own(text: str) -> str:
    """The reader's own text; a text that is too long raises TextError."""
    if len(text) > TEXT_LIMIT:
        raise TextError(
            f"Your text has {len(text):,} characters; {TEXT_LIMIT:,} fit into the address, so "
            "upload a longer one as a file."
        )
    return text


def _choose_file() -> str:
    """The text of a file; it is too long for the address, so a link does not hold it."""
    most = limits.TOKENIZER_CHARACTERS.most
    most_bytes = BYTES_OF_CHARACTER * most
    st.caption(
        f"Plain text of at most {most:,} characters. A link does not "
        "contain it: whoever opens the link uploads the file again."
    )
    upload = st.file_uploader(
        "Text file",
        key="learn_file",
        max_upload_size=most_bytes // 1_000_000 or 1,
        on_change=_forget_upload,
    )
    if upload is None:  # removed, or uploaded before the reader went to another page
        return _uploaded_text()
    file = state_of(TrainingFile)
    if file.upload != upload.file_id:
        _forget_upload()  # a refused file is not kept
        if upload.size > most_bytes:
            raise TextError(
                f"The file has {upload.size:,} bytes; the limit is {most:,} characters. "
                "Upload a part of it."
            )
        text = checked(decoded(upload.getvalue()), limits.TOKENIZER_CHARACTERS)
        file.upload, file.text = upload.file_id, text
    return _uploaded_text()


def _uploaded_text() -> str:
    return state_of(TrainingFile).text


def _forget_upload() -> None:
    """For the callback: the file was removed, or another was uploaded."""
    file = state_of(TrainingFile)
    file.upload = file.text = ""
