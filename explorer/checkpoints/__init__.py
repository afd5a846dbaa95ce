"""The parts of the Checkpoints page: the shelf, and the views of the chosen model."""

from explorer.checkpoints.bringing import bring
from explorer.checkpoints.choosing import choose_view
from explorer.checkpoints.pasting import pasted
from explorer.checkpoints.shelf import shelf
from explorer.checkpoints.showing import described, opened, show
from explorer.checkpoints.taking import take_away

__all__ = ["bring", "choose_view", "described", "opened", "pasted", "shelf", "show", "take_away"]
