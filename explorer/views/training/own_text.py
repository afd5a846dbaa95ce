"""The reader's own text or table: pasted, or a file; and the tokenizer that reads it."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from explorer.app import reader_models
from explorer.app.messages import say
from explorer.catalog.open_model import OpenModel
from explorer.runs.finetuning import task_for
from explorer.system import limits
from explorer.tasks import Given, Task, task_of
from explorer.tasks.own_tokenizer import SUBWORDS, WORDS
from explorer.text import TextError
from explorer.text.checked_text import decoded
from explorer.text.labels import literal
from models.loading.checkpoint import CheckpointError
from models.loading.checkpoint_tokenizer import tokenizer_text

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused unread."""
MOST_PASTED = 200_000
"""A pasted text is sent with every click on the page; a file is sent once."""
TOKENIZERS = {
    WORDS: "Its own words",
    SUBWORDS: "Its own subwords (byte-level BPE)",
}
OF_MODEL = "Those of the model "


@dataclass(frozen=True)
class OwnText:
    """What the reader gave: nothing for a task that needs none; a tokenizer as `task_of` has it.

    `parent` is the trained model that the run starts from, whose tokenizer reads the text.
    """

    text: str | None = None
    tokenizer: str | None = None
    parent: OpenModel | None = None

    def task(self, name: str) -> Task:
        """The task that is made of it; TextError where there is none."""
        if self.parent is not None:
            return task_for(self.parent, name, self.text)
        return task_of(name, self.text, self.tokenizer)


def draw_own_text(given: Given, parent: OpenModel | None = None) -> OwnText | None:
    """The text of the task and its tokenizer; None while there is no text."""
    text = _draw_text(given)
    if parent is not None:
        st.caption(f"Read by the tokenizer of {literal(parent.title)}.")
        return None if text is None else OwnText(text, parent=parent)
    try:
        tokenizer = _draw_tokenizer(given) if given.tokenizers else None
    except TextError as error:
        say(str(error))
        return None
    return None if text is None else OwnText(text, tokenizer)


def _draw_tokenizer(given: Given) -> str | None:
    """What the tokens are, as `task_of` has it; None where they are the usual ones.

    TextError where the chosen model has no tokenizer that can be trained with.
    """
    models = reader_models.openable()
    names = {label: name for name, label in reader_models.labels(models).items()}
    options = [*given.tokenizers, *(f"{OF_MODEL}{label}" for label in names)]
    chosen = st.selectbox(
        "Tokens",
        options,
        format_func=lambda option: TOKENIZERS.get(option, option),
        key=f"tokenizer_{given.name}",
        persist_state="session",
        help="Both vocabularies are trained on the training part only. Words that do not occur in "
        "it are unknown; subwords are made of bytes, so they read any text. The tokenizer of "
        "another model keeps its vocabulary, and gets the special tokens that this task needs.",
    )
    if chosen is None or chosen == given.tokenizers[0]:
        return None
    if chosen in given.tokenizers:
        return str(chosen)
    label = chosen.removeprefix(OF_MODEL)
    return _tokenizer_of(models[names[label]].folder, label)


def _tokenizer_of(folder: Path, name: str) -> str:
    """The tokenizer.json of a model."""
    try:
        text = tokenizer_text(folder)
    except CheckpointError as error:
        raise TextError(str(error)) from error
    if text is None:
        raise TextError(f"{name} comes without a tokenizer.json: choose another tokenizer.")
    return text


def _draw_text(given: Given) -> str | None:
    """Pasted or uploaded, and checked again here."""
    is_table = bool(given.columns)
    pasted = st.text_area(
        f"Table with the columns {' and '.join(given.columns)}" if is_table else "Text",
        key=f"pasted_{given.name}",
        height=140,
        persist_state="session",
    )
    st.button("Use this table" if is_table else "Use this text", key=f"use_{given.name}")
    largest = BYTES_OF_CHARACTER * limits.CORPUS_CHARACTERS.most
    kinds = ["csv", "tsv"] if is_table else ["txt"]
    file = st.file_uploader(
        f"Or a .{' or .'.join(kinds)} file",
        type=kinds,
        key=f"file_{given.name}",
        max_upload_size=largest // 1_000_000 or 1,
    )
    if file is None and len(pasted) > MOST_PASTED:
        say(f"Pasted text can have at most {MOST_PASTED:,} characters: upload a file instead.")
        return None
    if file is None:
        return pasted or None
    if file.size > largest:
        say(f"The file is too long; {limits.CORPUS_CHARACTERS.most:,} characters at most.")
        return None
    try:
        return decoded(file.getvalue())
    except TextError as error:
        say(str(error))
        return None
