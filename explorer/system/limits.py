"""The limits that an operator may set: their defaults, and the sentence for whoever exceeds one.

There are two columns of defaults: a laptop, and a server that strangers use (`EXPLORER_PUBLIC=1`).
A limit is set by `EXPLORER_LIMIT_<NAME>` in the environment, or by `<name> = <number>` in the TOML
file that `EXPLORER_LIMITS` names; the environment wins. What a file format may declare is bounded
where the file is read (`models/loading`, `text/published`): no server needs another value there.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from functools import lru_cache
from pathlib import Path

PUBLIC = "EXPLORER_PUBLIC"
FILE = "EXPLORER_LIMITS"
PREFIX = "EXPLORER_LIMIT_"
MB = 1_000_000
GB = 1_000 * MB


@dataclass(eq=False)
class Limit:
    """One limit: its two defaults and their unit, and what it bounds.

    `sentence` is for the person who exceeds it. In it `{limit}` is the bound and `{amount}` the
    amount that exceeds it, both with their unit; bytes become MB or GB. It is empty if nobody reads
    it, for example because the oldest file is simply removed.
    """

    defaults: InitVar[tuple[int, int, str]]
    about: str
    sentence: str = ""
    name: str = ""
    """The name of its constant in lower case."""

    def __post_init__(self, defaults: tuple[int, int, str]) -> None:
        self.laptop, self.public, self.unit = defaults

    @property
    def most(self) -> int:
        """The bound on this server."""
        return _chosen(self)

    def allows(self, amount: float) -> bool:
        return amount <= self.most

    def check(self, amount: float, refused: type[Exception]) -> None:
        """Raise this kind of error, with the sentence for the person, if the amount exceeds it."""
        if not self.allows(amount):
            raise refused(self.refusal(amount))

    def refusal(self, amount: float | None = None, most: float | None = None) -> str:
        """The sentence for the person who exceeds it with this amount.

        `most` is the bound for this person, if it is not the usual one.
        """
        words = "" if amount is None else self.in_words(amount)
        bound = self.in_words(self.most if most is None else most)
        return self.sentence.format(limit=bound, amount=words)

    def in_words(self, number: float) -> str:
        if self.unit == "bytes":
            size, unit = (number / GB, "GB") if number >= GB else (number / MB, "MB")
            return f"{size:,.3g} {unit}" if size < 100 else f"{size:,.0f} {unit}"
        unit = self.unit[:-1] if number == 1 and self.unit.endswith("s") else self.unit
        return f"{number:,.0f} {unit}".strip()


PASS_TOKENS = Limit(
    (4_096, 2_048, "tokens"),
    "One text in a forward pass",
    "This text has {amount}; the limit is {limit}. Shorten it.",
)
PASS_BYTES = Limit(
    (8 * GB, 500 * MB, "bytes"),
    "What one forward pass computes and records",
    "This forward pass would need {amount} of memory; the limit is {limit}. Shorten the text or "
    "choose a smaller model.",
)
TEXT_CHARACTERS = Limit(
    (20_000, 8_000, "characters"),
    "A typed sentence; one of more than 2,000 characters is kept in a file, which links name",
    "Your text has {amount}; only the first {limit} were read.",
)
TEXTS_BYTES = Limit(
    (50 * MB, 20 * MB, "bytes"),
    "All such files; the one that was opened longest ago is removed first",
)
TEXTS_DAYS = Limit((365, 30, "days"), "How long such a file is kept after it was last opened")
INSIDE_BYTES = Limit(
    (4 * GB, 250 * MB, "bytes"),
    "Memory of one view on the page Inside training: an update, snapshots or gradients",
    "This view of the run would need {amount} of memory; the limit is {limit}. Choose a run of a "
    "smaller model.",
)
PASS_SHARE = Limit(
    (80, 40, "%"),
    "The share of the free memory that one forward pass may take",
    "This forward pass would need more memory than is free. Shorten the text, choose a smaller "
    "model, or try again later.",
)
RESULTS_BYTES = Limit((600 * MB, 260 * MB, "bytes"), "Forward passes in memory, of all readers")
MODEL_BYTES = Limit(
    (64 * GB, 1 * GB, "bytes"),
    "Weights of one opened model, at 32 bits a number",
    "The weights of this model take {amount} of memory; the limit is {limit}. Choose a smaller "
    "model.",
)
RESULTS_SECONDS = Limit((300, 120, "seconds"), "How long a forward pass is kept after its last use")
WEIGHTS_BYTES = Limit((4 * GB, 1 * GB, "bytes"), "Weights of all opened models, of all readers")
PAGES_AT_ONCE = Limit((2, 2, "pages"), "Pages that compute at the same time; others take turns")
PAIRS = Limit(
    (200, 20, "pairs"),
    "Pairs of texts in one question about a circuit",
    "There are {amount} of texts; the limit is {limit}. Remove some.",
)
EDGES = Limit(
    (4_000_000, 1_000_000, "edges"),
    "Edges between the parts of one model that are scored; GPT-2 has 32,491",
    "This model has {amount} between its parts; the limit is {limit}. Look at the scores of its "
    "heads and feed-forward layers instead.",
)
TABLE_BYTES = Limit(
    (1 * MB, 200_000, "bytes"),
    "A table of pairs of texts, as CSV",
    "The table is {amount}; the limit is {limit}. Remove some rows.",
)
FINDING_BYTES = Limit(
    (20 * MB, 4 * MB, "bytes"),
    "A finding about a circuit that is opened from a file",
    "The file is {amount}; a finding may be at most {limit}. Choose another file.",
)
LESSON_BYTES = Limit(
    (200_000, 100_000, "bytes"),
    "The file of a lesson",
    "The file is {amount}; a lesson may be at most {limit}. Split it into several.",
)
OWN_LESSONS_BYTES = Limit(
    (40 * MB, 4 * MB, "bytes"),
    "Lessons that all readers have uploaded; where they are more, the network with the most bytes "
    "loses first those of its reader who has not opened one for longest",
)

UPLOAD_BYTES = Limit(
    (200 * MB, 200 * MB, "bytes"),
    "One upload; on a laptop it may be as large as memory allows, up to 2 GB",
    "An upload may be at most {limit}; this one is {amount}.",
)
UPLOAD_SECONDS = Limit(
    (7_200, 1_800, "seconds"),
    "How long one upload may take to arrive",
    "The upload took more than {limit} and was stopped. Use a smaller file or a faster connection.",
)
UPLOADS_RECEIVING = Limit(
    (4 * GB, 600 * MB, "bytes"),
    "Uploaded files in memory that no page has opened yet, of all readers; each counts as at least "
    "0.5 MB",
    "The server has no room for another upload now. Try again in a minute.",
)
UPLOADS_RECEIVING_OF_READER = Limit(
    (3 * GB, 250 * MB, "bytes"),
    "The same, of one reader",
    "Your uploads that are not opened yet may be at most {limit} together. Open them, or remove "
    "some from the form.",
)
UPLOADS_KEPT = Limit(
    (8 * GB, 2 * GB, "bytes"),
    "Uploaded models on disk, of all readers; each counts as at least 4 MB, and the reader with "
    "the most loses the oldest first",
)
UPLOADS_KEPT_OF_READER = Limit(
    (4 * GB, 400 * MB, "bytes"), "The same, of one reader; the oldest is removed first"
)
UPLOADS_DAYS = Limit((36_500, 7, "days"), "How long an uploaded model is kept after its last use")
DISK_LEFT = Limit(
    (50 * MB, 1 * GB, "bytes"),
    "Disk space that uploads, downloads and training must leave free",
    "There is not enough disk space for this, which takes {amount}. Free some, or ask the person "
    "who runs the app to.",
)
DOWNLOAD_BYTES = Limit(
    (16 * GB, 16 * GB, "bytes"),
    "One model that is downloaded from the hub",
    "This model is {amount}; the limit is {limit}. Choose a smaller one.",
)

RUN_PARAMETERS = Limit(
    (20_000_000, 2_000_000, "parameters"),
    "A model that is trained here",
    "This model has {amount}; the limit is {limit}. Make it narrower or give it fewer layers.",
)
PARENT_PARAMETERS = Limit(
    (400_000_000, 20_000_000, "parameters"),
    "A model that is fine-tuned here",
    "This model has {amount}; the limit for fine-tuning is {limit}. Start from a smaller one.",
)
RUN_STEPS = Limit(
    (100_000, 5_000, "steps"),
    "One training run",
    "This run would have {amount}; the limit is {limit}. Choose fewer.",
)
SINGULAR_SIDE = Limit(
    (4_096, 2_048, "rows or columns"),
    "The smaller side of a large matrix whose singular values are computed",
)
RUN_SECONDS = Limit(
    (7 * 24 * 3600, 600, "seconds"),
    "How long one training run may take",
    "The run was stopped at the limit of {limit}. Its state is kept.",
)
STEP_SECONDS = Limit(
    (600, 10, "seconds"),
    "How long one training step may take, without what is measured and saved after it",
    "The run was stopped because one step took more than {limit}. Make the model or the batch "
    "smaller.",
)
RUN_MEMORY = Limit(
    (8 * GB, 1 * GB, "bytes"),
    "The memory of one training run",
    "The run was stopped because it needed more than {limit} of memory. Make the model or the "
    "batch smaller.",
)
RUN_BYTES = Limit(
    (10 * GB, 250 * MB, "bytes"),
    "What one training run may write to disk",
    "The run was stopped at the limit of {limit} on disk. Its state is kept.",
)
RUNS_BYTES_OF_READER = Limit(
    (100 * GB, 1 * GB, "bytes"),
    "Training runs on disk, of one reader; none is started beyond it",
    "Your runs take {amount} of disk space; the limit is {limit}. Delete one to start another.",
)
RUNS_BYTES = Limit(
    (100 * GB, 10 * GB, "bytes"),
    "Training runs on disk, of all readers; none is started beyond it",
    "This server's runs have reached their limit of {limit} of disk space. Delete one of yours, or "
    "try again later.",
)
RUNS_OF_READER = Limit(
    (100_000, 20, "runs"),
    "Training runs that are kept, of one reader",
    "You have {amount}; the limit is {limit}. Delete one to start another.",
)
RUNS_KEPT = Limit(
    (1_000_000, 1_000, "runs"),
    "Training runs that are kept, of all readers",
    "This server already stores its maximum of {limit}. Try again later.",
)
RUNS_DAYS = Limit(
    (36_500, 7, "days"),
    "How long runs are kept, and then set aside, except those of the person who runs the server",
)
UNDO_SECONDS = Limit(
    (86_400, 600, "seconds"), "How long a deleted run can be restored; it counts as kept until then"
)
SWEEP_RUNS = Limit(
    (32, 8, "runs"),
    "Runs of one race or sweep",
    "These settings make {amount}; the limit is {limit}. Leave some values out.",
)
QUEUE_OF_READER = Limit(
    (100, 2, "runs"),
    "Runs that are training or queued, of one reader",
    "You already have {amount} training or queued, which is the limit. Wait for one to end, or "
    "stop one.",
)
QUEUE = Limit(
    (1_000, 20, "runs"),
    "Runs that are training or queued, of all readers",
    "This server already has {amount} training or queued, which is the limit. Try again later.",
)
NETWORK_SHARE = Limit(
    (100, 33, "%"),
    "The share that one network may have of `queue`, `runs_kept`, `runs_bytes` and "
    "`messages_bytes`; behind a proxy, FORWARDED_ALLOW_IPS must name it",
    "Your network has reached its share of this server's runs. Delete one, wait for one to end, or "
    "try again later.",
)
CORPUS_CHARACTERS = Limit(
    (5_000_000, 500_000, "characters"),
    "A text or table that a model is trained on",
    "The text has {amount}; the limit is {limit}. Shorten it.",
)
TOKENIZER_CHARACTERS = Limit(
    (1_000_000, 200_000, "characters"),
    "A text that a tokenizer is trained on",
    "The text has {amount}; the limit is {limit}. Shorten it.",
)
LINES = Limit(
    (1_000, 1_000, "lines"),
    "A text that is searched for the lines that activate a head most",
    "The text has {amount}; the limit is {limit}. Shorten it.",
)
LINE_CHARACTERS = Limit(
    (1_000, 500, "characters"),
    "One line of such a text",
    "A line of this text has {amount}; the limit is {limit}. Split it.",
)
ACTIVATIONS_KEPT = Limit(
    (500 * MB, 200 * MB, "bytes"),
    "Activations of heads on such texts, as numbers on disk without the texts, of all readers; the "
    "oldest are removed first",
)
WORK_SECONDS = Limit(
    (600, 60, "seconds"),
    "How long a page may compute for one answer (a pass, ablations, training a tokenizer)",
    "This took more than {limit} and was stopped. Shorten the text or choose a smaller model.",
)

KEPT_VIEWS = Limit(
    (40, 40, "views"),
    "Views in the session of one reader",
    "A session holds at most {limit}. Remove one, or export this session and begin another.",
)
KEPT_BYTES_OF_READER = Limit(
    (40 * MB, 8 * MB, "bytes"),
    "The same, in bytes",
    "With this view your session would take {amount}; the limit is {limit}. Remove a large view.",
)
KEPT_BYTES = Limit(
    (400 * MB, 50 * MB, "bytes"),
    "Sessions of all readers; each counts as at least 10 kB. Of the network with the most bytes, "
    "the one that was used longest ago is removed first, and its list of addresses stays in its "
    "reader's browser",
)
SESSION_FILE_BYTES = Limit(
    (3 * MB, 3 * MB, "bytes"),
    "A session as one HTML file",
    "This session would be a file of {amount}; the limit is {limit}.",
)

SESSIONS = Limit(
    (1_000, 400, "open connections"),
    "Open connections to this server",
    "This server is full ({limit}). Try again in a few minutes.",
)
SESSIONS_OF_ADDRESS = Limit(
    (1_000, 100, "open connections"),
    "Open connections from one network; behind a proxy, FORWARDED_ALLOW_IPS must name it",
    "Your network has reached its limit of {limit}. Close a tab.",
)
MESSAGE_BYTES = Limit(
    (25 * MB, 4 * MB, "bytes"),
    "One message of a browser, with the values of all its widgets; a longer one ends the "
    "connection",
)
MESSAGES_BYTES = Limit(
    (2 * GB, 40 * MB, "bytes"),
    "Long messages (over 50 kB) of open pages, of all readers; each takes several times its size "
    "in memory",
    "The long texts on this server's pages have reached their limit. Shorten yours, or try again "
    "later.",
)
MESSAGE_RATE = Limit(
    (100, 20, "messages"),
    "Messages of one connection in a second; those of one network may be ten times as many, and "
    "what comes faster waits",
)
DRAIN_SECONDS = Limit(
    (5, 30, "seconds"),
    "How long a server that has received SIGTERM leads its readers to others before it ends",
)


def _all_limits() -> tuple[Limit, ...]:
    """Every limit above, under the name of its constant."""
    limits = {name: value for name, value in globals().items() if isinstance(value, Limit)}
    for name, limit in limits.items():
        limit.name = name.lower()
    return tuple(limits.values())


TABLE = _all_limits()
"""All limits, in the order above."""


def is_public() -> bool:
    """Whether the operator has said that strangers use this server."""
    return os.environ.get(PUBLIC) == "1"


def fault() -> str | None:
    """One sentence on what is wrong with the settings, for whoever starts the server."""
    names = {limit.name for limit in TABLE}
    if os.environ.get(PUBLIC, "") not in {"", "0", "1"}:
        return f"{PUBLIC} must be 1 for a server that strangers use, or 0."
    variables = {name for name in os.environ if name.startswith(PREFIX)}
    if stray := sorted(variables - {f"{PREFIX}{name.upper()}" for name in names}):
        return f"{stray[0][:60]} is not a limit; docs/limits.md lists them all."
    try:
        if stray := sorted(_file_settings().keys() - names):
            return f"{stray[0][:60]!r} in {FILE} is not a limit; docs/limits.md lists them all."
        for limit in TABLE:
            _chosen(limit)
    except ValueError as error:
        return str(error)
    return None


def _chosen(limit: Limit) -> int:
    """The bound that is set, or the default; ValueError if it is set but not a number."""
    name = f"{PREFIX}{limit.name.upper()}"
    if (value := os.environ.get(name)) is not None:
        return _number(value, name)
    if (in_file := _file_settings().get(limit.name)) is not None:
        return _number(in_file, f"{limit.name} in {FILE}")
    return limit.public if is_public() else limit.laptop


def _number(value: object, name: str) -> int:
    try:
        number = int(str(value).replace("_", ""))
    except ValueError:
        number = -1
    if number < 0 or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least 0, not {str(value)[:40]!r}.")
    return number


def _file_settings() -> Mapping[str, object]:
    path = os.environ.get(FILE)
    return _read_toml(path) if path else {}


@lru_cache(maxsize=4)
def _read_toml(path: str) -> Mapping[str, object]:
    """The TOML file as it was when the server started."""
    try:
        return tomllib.loads(Path(path).expanduser().read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"The file that {FILE} names cannot be read as TOML.") from error
