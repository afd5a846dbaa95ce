"""Small tasks whose models train in seconds, and tasks made of a reader's own text.

`TASKS["reverse"]` is a task; `CUSTOM_TASKS["characters"].build(text)` makes one;
`task_of(name, text, tokenizer)` does either.
"""

from explorer.tasks.task import CustomTask, Task, pattern_of, pattern_score
from explorer.tasks.task_list import CUSTOM_TASKS, TASKS, stored_tokenizer, task_of, text_for

__all__ = [
    "CUSTOM_TASKS",
    "TASKS",
    "CustomTask",
    "Task",
    "pattern_of",
    "pattern_score",
    "stored_tokenizer",
    "task_of",
    "text_for",
]
