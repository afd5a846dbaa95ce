"""A process beside the first one of a training that torchrun has started.

It makes the same updates with its share of each batch, and writes nothing.
"""

from functools import partial
from pathlib import Path

from explorer.runs.run import Run, RunError
from explorer.runs.spec import HOT
from explorer.runs.worker import ANEW, END, saved_or_untrained
from models import distributed
from models.training import train


def follow(folder: Path) -> None:
    """Train with the first process, which trains this run, until that ends."""
    run = Run(folder)
    spec, task = run.spec, run.task()
    model, state = saved_or_untrained(run, spec, task)
    updates = None
    try:
        distributed.broadcast([END])
        while True:
            said, *values = distributed.broadcast([END] * (1 + len(HOT)))
            if said == END:
                return
            if updates is None or said == ANEW:
                training = spec.with_hot(dict(zip(HOT, values, strict=True))).training
                batch = partial(task.batch, training=training)
                updates = train(model, batch, training, state)
            next(updates, None)
    except RuntimeError as error:  # its own are in its status
        raise RunError("The first process of this training has ended.") from error
