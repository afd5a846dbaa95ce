"""The lessons that come with the app."""

from explorer.lessons import lesson_catalog
from explorer.lessons.lesson_file import read_file

LESSONS = {path.stem: read_file(path) for path in sorted(lesson_catalog.FILES.glob("*.toml"))}
WALKED = (
    "follow_one_number",
    "sampling_and_temperature",
    "tokens_of_other_languages",
    "two_layers_make_induction",
    "what_training_does",
)
"""A browser test does them: it makes some of their words itself, or they need other controls."""
