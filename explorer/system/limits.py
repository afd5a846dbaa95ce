"""Every bound that whoever runs the app may set: what it is by default, and what it says when met.

One table, two columns: a laptop, and a server that strangers use (`EXPLORER_PUBLIC=1`). A bound
is set by `EXPLORER_LIMIT_<NAME>` in the environment, or by `<name> = <number>` in the TOML file
that `EXPLORER_LIMITS` names; the environment wins. Any room may read this module, which knows
none of them. What a file format may declare is bounded where the file is read (`models/loading`,
`text/published`): no server needs another value there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PUBLIC = "EXPLORER_PUBLIC"
FILE = "EXPLORER_LIMITS"
PREFIX = "EXPLORER_LIMIT_"
MB = 1_000_000
GB = 1_000 * MB


@dataclass(frozen=True)
class Limit:
    """One bound. `sentence` is what the person reads who meets it.

    In the sentence `{most}` is the bound and `{found}` what it was met with, both with their
    unit: bytes become MB or GB. Where nobody meets it, since the oldest just leave, it is empty.
    """

    name: str
    laptop: int
    public: int
    unit: str
    about: str
    sentence: str = ""

    @property
    def most(self) -> int:
        """The bound here and now."""
        return _chosen(self)

    def allows(self, found: float) -> bool:
        """Whether this is within the bound."""
        return found <= self.most

    def refusal(self, found: float | None = None, most: float | None = None) -> str:
        """The sentence for the person who meets it with so many.

        `most` is the bound for this person where it is another than usual.
        """
        shown = "" if found is None else self.in_words(found)
        bound = self.in_words(self.most if most is None else most)
        return self.sentence.format(most=bound, found=shown)

    def in_words(self, number: float) -> str:
        """The number with its unit, as a sentence says it."""
        if self.unit == "bytes":
            size, unit = (number / GB, "GB") if number >= GB else (number / MB, "MB")
            return f"{size:,.3g} {unit}" if size < 100 else f"{size:,.0f} {unit}"
        unit = self.unit[:-1] if number == 1 and self.unit.endswith("s") else self.unit
        return f"{number:,.0f} {unit}".strip()


PASS_TOKENS = Limit(
    "pass_tokens",
    4_096,
    2_048,
    "tokens",
    "One text in a forward pass",
    "This text is {found} long and at most {most} are read here: shorten it.",
)
PASS_BYTES = Limit(
    "pass_bytes",
    8 * GB,
    500 * MB,
    "bytes",
    "What one forward pass computes and records",
    "This forward pass would need {found} of memory and at most {most} are given to one: "
    "shorten the text or choose a smaller model.",
)
TEXT_CHARACTERS = Limit(
    "text_characters",
    20_000,
    8_000,
    "characters",
    "A sentence that is typed; over 2,000 characters it is kept in a file, and links name the file",
    "Your text has {found} and at most {most} are read: the rest was cut off.",
)
TEXTS_BYTES = Limit(
    "texts_bytes",
    50 * MB,
    20 * MB,
    "bytes",
    "Such texts, of all readers; those opened longest ago leave first",
)
TEXTS_DAYS = Limit(
    "texts_days",
    365,
    30,
    "days",
    "The time that such a text is kept after it was opened last",
)
INSIDE_BYTES = Limit(
    "inside_bytes",
    4 * GB,
    250 * MB,
    "bytes",
    "What one view of the page Inside training holds: an update, snapshots or gradients",
    "This view of the run would need {found} of memory and at most {most} are given to it: choose "
    "a run of a smaller model.",
)
PASS_SHARE = Limit(
    "pass_share",
    80,
    40,
    "%",
    "The share of the free memory that one forward pass may take",
    "This forward pass would need more memory than is free: shorten the text, choose a smaller "
    "model, or try again later.",
)
RESULTS_BYTES = Limit(
    "results_bytes",
    600 * MB,
    260 * MB,
    "bytes",
    "Forward passes that are kept, of all readers",
)
MODEL_BYTES = Limit(
    "model_bytes",
    64 * GB,
    1 * GB,
    "bytes",
    "Weights of one model that is opened, at 32 bits a number",
    "The weights of this model take {found} of memory and at most {most} are opened here: choose a "
    "smaller model.",
)
RESULTS_SECONDS = Limit(
    "results_seconds",
    1_800,
    120,
    "seconds",
    "How long a forward pass is kept after its last use",
)
WEIGHTS_BYTES = Limit(
    "weights_bytes",
    4 * GB,
    1 * GB,
    "bytes",
    "Weights of models that are kept open, of all readers",
)
PAGES_AT_ONCE = Limit(
    "pages_at_once",
    2,
    2,
    "pages",
    "Runs of pages that compute at the same time; others take turns",
)
PAIRS = Limit(
    "pairs",
    200,
    20,
    "pairs",
    "Pairs of texts that one question about a circuit has",
    "These are {found} of texts and at most {most} are read here: leave some out.",
)
EDGES = Limit(
    "edges",
    4_000_000,
    1_000_000,
    "edges",
    "Edges between the parts of one model that are scored; GPT-2 has 32,491",
    "This model has {found} between its parts and at most {most} are scored here: its heads and "
    "feed-forward layers have scores.",
)
TABLE_BYTES = Limit(
    "table_bytes",
    1 * MB,
    200_000,
    "bytes",
    "A table of pairs of texts, as CSV",
    "The table has {found} and at most {most} are read here: leave some rows out.",
)
FINDING_BYTES = Limit(
    "finding_bytes",
    20 * MB,
    4 * MB,
    "bytes",
    "A finding about a circuit that is opened from a file",
    "The file has {found} and a finding at most {most} here: choose another file.",
)
LESSON_BYTES = Limit(
    "lesson_bytes",
    200_000,
    100_000,
    "bytes",
    "The file of a lesson",
    "The file has {found} and a lesson at most {most} here: split it into several.",
)
OWN_LESSONS_BYTES = Limit(
    "own_lessons_bytes",
    40 * MB,
    4 * MB,
    "bytes",
    "Lessons that all readers have uploaded; those of the reader who opened theirs longest ago "
    "leave first",
)

UPLOAD_BYTES = Limit(
    "upload_bytes",
    200 * MB,
    200 * MB,
    "bytes",
    "One upload; on a machine of one's own as much as its memory allows, up to 2 GB",
    "An upload may be at most {most}; this one is {found}.",
)
UPLOAD_SECONDS = Limit(
    "upload_seconds",
    7_200,
    1_800,
    "seconds",
    "The time one upload may take to arrive",
    "The upload took more than {most} and was ended: upload a smaller file, or from a faster line.",
)
UPLOADS_RECEIVING = Limit(
    "uploads_receiving",
    4 * GB,
    600 * MB,
    "bytes",
    "Uploaded files in memory, not opened yet, of all readers; each counts 0.5 MB at least",
    "The server is receiving as many uploads as it has room for; try again in a minute.",
)
UPLOADS_RECEIVING_OF_READER = Limit(
    "uploads_receiving_of_reader",
    3 * GB,
    250 * MB,
    "bytes",
    "Uploaded files in memory, not opened yet, of one reader",
    "Your uploads that wait to be opened may be at most {most} together: open them, or take some "
    "out of the form.",
)
UPLOADS_KEPT = Limit(
    "uploads_kept",
    8 * GB,
    2 * GB,
    "bytes",
    "Uploaded models on disk, of all readers; each counts 4 MB at least, and the oldest of the "
    "reader with the most leave first",
)
UPLOADS_KEPT_OF_READER = Limit(
    "uploads_kept_of_reader",
    4 * GB,
    400 * MB,
    "bytes",
    "Uploaded models on disk, of one reader; each counts 4 MB at least, and the oldest leave first",
)
UPLOADS_DAYS = Limit(
    "uploads_days",
    36_500,
    7,
    "days",
    "How long an uploaded model is kept after it was used last",
)
DISK_LEFT = Limit(
    "disk_left",
    50 * MB,
    1 * GB,
    "bytes",
    "Free disk space that uploads, downloads and training leave",
    "There is not enough disk space for this, which takes {found}: free some, or ask whoever runs "
    "the app to.",
)
DOWNLOAD_BYTES = Limit(
    "download_bytes",
    16 * GB,
    16 * GB,
    "bytes",
    "One model that is downloaded from the hub",
    "This model has {found}, more than the {most} that can be downloaded here.",
)

RUN_PARAMETERS = Limit(
    "run_parameters",
    20_000_000,
    2_000_000,
    "parameters",
    "A model that is trained here",
    "This model has {found}; at most {most} are trained here, so make it narrower or give it "
    "fewer layers.",
)
PARENT_PARAMETERS = Limit(
    "parent_parameters",
    400_000_000,
    20_000_000,
    "parameters",
    "A model that is fine-tuned here",
    "This model has {found}; one of at most {most} is fine-tuned here, so start from a smaller "
    "one.",
)
RUN_STEPS = Limit(
    "run_steps",
    100_000,
    5_000,
    "steps",
    "One training run",
    "A run has at most {most} here, not {found}.",
)
RUN_SECONDS = Limit(
    "run_seconds",
    7 * 24 * 3600,
    600,
    "seconds",
    "The time one training run may take",
    "The run was stopped after {most}, the most that one may take here; its state is kept.",
)
STEP_SECONDS = Limit(
    "step_seconds",
    600,
    10,
    "seconds",
    "The time one training step may take, with what is measured and saved after it",
    "The run was stopped, since one step took more than {most}: make the model or the batch "
    "smaller.",
)
RUN_MEMORY = Limit(
    "run_memory",
    8 * GB,
    1 * GB,
    "bytes",
    "The memory one training run may take",
    "The run was stopped, since it needed more than {most} of memory: make the model or the "
    "batch smaller.",
)
RUN_BYTES = Limit(
    "run_bytes",
    10 * GB,
    250 * MB,
    "bytes",
    "What one training run may write to disk",
    "The run was stopped before it wrote more than {most}, the most that one may write here; "
    "its state is kept.",
)
RUNS_BYTES_OF_READER = Limit(
    "runs_bytes_of_reader",
    100 * GB,
    1 * GB,
    "bytes",
    "Training runs on disk, of one reader; none is started beyond it",
    "Your runs fill {found} and at most {most} are kept: delete one to start another.",
)
RUNS_BYTES = Limit(
    "runs_bytes",
    100 * GB,
    10 * GB,
    "bytes",
    "Training runs on disk, of all readers; none is started beyond it",
    "The runs of this server fill {most}, all there is for them: delete one of yours, or try "
    "again later.",
)
RUNS_OF_READER = Limit(
    "runs_of_reader",
    100_000,
    20,
    "runs",
    "Training runs that one reader keeps",
    "You have {found} here and at most {most} are kept: delete one to start another.",
)
RUNS_KEPT = Limit(
    "runs_kept",
    1_000_000,
    1_000,
    "runs",
    "Training runs that are kept, of all readers",
    "This server keeps {most}, the most there is room for: try again later.",
)
RUNS_DAYS = Limit(
    "runs_days",
    36_500,
    7,
    "days",
    "How long the runs are kept of readers other than who runs the server",
)
UNDO_SECONDS = Limit(
    "undo_seconds",
    86_400,
    600,
    "seconds",
    "How long a deleted run can be brought back; it counts as kept meanwhile",
)
SWEEP_RUNS = Limit(
    "sweep_runs",
    32,
    8,
    "runs",
    "Runs of one race or sweep",
    "These settings make {found} and a sweep has at most {most} here: leave some values out.",
)
QUEUE_OF_READER = Limit(
    "queue_of_reader",
    100,
    2,
    "runs",
    "Runs of one reader that train or wait",
    "You have {found} in training or waiting, the most at once: wait for one to end, or stop one.",
)
QUEUE = Limit(
    "queue",
    1_000,
    20,
    "runs",
    "Runs that train or wait, of all readers",
    "This server has {found} in training or waiting, the most at once: try again later.",
)
NETWORK_SHARE = Limit(
    "network_share",
    100,
    33,
    "%",
    "The share that one network may have of `queue`, `runs_kept`, `runs_bytes` and "
    "`messages_bytes`; behind a proxy, FORWARDED_ALLOW_IPS names it",
    "Your network has all that one may have of this server's runs, in training, waiting or kept: "
    "delete one, wait for one to end, or try again later.",
)
CORPUS_CHARACTERS = Limit(
    "corpus_characters",
    5_000_000,
    500_000,
    "characters",
    "A text or table to train a model on",
    "The text has {found}; at most {most} fit, so shorten it.",
)
TOKENIZER_CHARACTERS = Limit(
    "tokenizer_characters",
    1_000_000,
    200_000,
    "characters",
    "A text to train a tokenizer on",
    "The text has {found}; at most {most} fit, so shorten it.",
)
LINES = Limit(
    "lines",
    1_000,
    1_000,
    "lines",
    "A text whose lines are searched for what excites a head",
    "The text has {found}; at most {most} are read, so shorten it.",
)
LINE_CHARACTERS = Limit(
    "line_characters",
    1_000,
    500,
    "characters",
    "One line of such a text",
    "A line of this text has {found}; at most {most} are read, so break it.",
)
ACTIVATIONS_KEPT = Limit(
    "activations_kept",
    500 * MB,
    200 * MB,
    "bytes",
    "What heads made of such texts, as numbers on disk without the texts, of all readers; the "
    "oldest leave first",
)
WORK_SECONDS = Limit(
    "work_seconds",
    600,
    60,
    "seconds",
    "Computing for one answer of a page (a pass, ablations, a tokenizer's training)",
    "This took more than {most} and was stopped: shorten the text or choose a smaller model.",
)

KEPT_VIEWS = Limit(
    "kept_views",
    40,
    40,
    "views",
    "Views that one reader keeps in a session",
    "A session keeps {most} at most: remove one, or export this session and begin another.",
)
KEPT_BYTES_OF_READER = Limit(
    "kept_bytes_of_reader",
    40 * MB,
    8 * MB,
    "bytes",
    "The views that one reader keeps in a session",
    "With this view your session would hold {found} and at most {most} are kept of one reader: "
    "remove a large view.",
)
KEPT_BYTES = Limit(
    "kept_bytes",
    400 * MB,
    50 * MB,
    "bytes",
    "The views that all readers keep; a session counts 10 kB at least. That which was used longest "
    "ago leaves first, and its list of addresses stays in its reader's browser",
)
SESSION_FILE_BYTES = Limit(
    "session_file_bytes",
    3 * MB,
    3 * MB,
    "bytes",
    "A kept session as one HTML file",
    "This session would be a file of {found} and at most {most} are written.",
)

SESSIONS = Limit(
    "sessions",
    1_000,
    400,
    "open connections",
    "Open connections to this server",
    "This server is full ({most}): try again in a few minutes.",
)
SESSIONS_OF_ADDRESS = Limit(
    "sessions_of_address",
    1_000,
    100,
    "open connections",
    "Open connections from one network address; behind a proxy, FORWARDED_ALLOW_IPS names it",
    "Your network has {most} to this server, the most that it may have: close a tab.",
)
MESSAGE_BYTES = Limit(
    "message_bytes",
    25 * MB,
    4 * MB,
    "bytes",
    "One message of a browser, with everything that its widgets hold; a longer one is cut off",
)
MESSAGES_BYTES = Limit(
    "messages_bytes",
    2 * GB,
    40 * MB,
    "bytes",
    "Long messages (over 50 kB) that open pages keep, of all readers; each takes several times its "
    "size in memory",
    "The long texts on pages of this server fill all there is for them: shorten yours, or try "
    "again later.",
)
MESSAGE_RATE = Limit(
    "message_rate",
    100,
    20,
    "messages",
    "Messages of one connection in a second, and a tenth of those of one network; what comes "
    "faster waits",
)
DRAIN_SECONDS = Limit(
    "drain_seconds",
    5,
    30,
    "seconds",
    "The time that readers have, after SIGTERM, to go on elsewhere before the server ends",
)

TABLE: tuple[Limit, ...] = tuple(each for each in globals().values() if isinstance(each, Limit))
"""All of them, in the order they stand above."""


def is_public() -> bool:
    """Whether strangers use this server, as whoever started it has said."""
    return os.environ.get(PUBLIC) == "1"


def fault() -> str | None:
    """One sentence saying what is wrong with the settings, for whoever starts the server."""
    known = {limit.name: limit for limit in TABLE}
    if os.environ.get(PUBLIC, "") not in {"", "0", "1"}:
        return f"{PUBLIC} must be 1 for a server that strangers use, or 0."
    named = {name for name in os.environ if name.startswith(PREFIX)}
    if stray := sorted(named - {f"{PREFIX}{name.upper()}" for name in known}):
        return f"{stray[0][:60]} sets no limit; docs/limits.md names them."
    try:
        if stray := sorted(_file_settings().keys() - known.keys()):
            return f"{FILE} sets {stray[0][:60]!r}, which is no limit; docs/limits.md names them."
        for limit in TABLE:
            _chosen(limit)
    except ValueError as error:
        return str(error)
    return None


def _chosen(limit: Limit) -> int:
    """ValueError, in one sentence, where it is set to what is no number."""
    name = f"{PREFIX}{limit.name.upper()}"
    if (said := os.environ.get(name)) is not None:
        return _number(said, name)
    found = _file_settings().get(limit.name)
    if found is not None:
        return _number(found, f"{limit.name} in {FILE}")
    return limit.public if is_public() else limit.laptop


def _number(value: object, name: str) -> int:
    try:
        number = int(str(value).replace("_", ""))
    except ValueError:
        number = -1
    if number < 0 or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number from 0 on, not {str(value)[:40]!r}.")
    return number


def _file_settings() -> Mapping[str, object]:
    named = os.environ.get(FILE)
    return _read(named) if named else {}


@lru_cache(maxsize=4)
def _read(named: str) -> Mapping[str, object]:
    """The TOML file as it was when the server started."""
    try:
        return tomllib.loads(Path(named).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"The file that {FILE} names cannot be read as TOML.") from error
