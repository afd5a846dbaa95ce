"""Small tasks that learn in seconds, and tasks made of a text that the reader gives.

`TASKS["reverse"]` is a task; `GIVEN["characters"].build(text)` makes one;
`task_of(name, text, tokenizer)` does either.
"""

from explorer.tasks.builtin import TASKS
from explorer.tasks.given import GIVEN, Given, stored_tokenizer, task_of
from explorer.tasks.task import Measurement, Task, pattern_of, pattern_score

__all__ = [
    "GIVEN",
    "TASKS",
    "Given",
    "Measurement",
    "Task",
    "pattern_of",
    "pattern_score",
    "stored_tokenizer",
    "task_of",
]
