"""The parts of the Checkpoints page: the shelf, and the views of the chosen model."""

from explorer.views.checkpoints.checkpoint_lines import pasted
from explorer.views.checkpoints.export_model import take_away
from explorer.views.checkpoints.model_view import described, opened, show
from explorer.views.checkpoints.shelf import shelf
from explorer.views.checkpoints.upload import bring
from explorer.views.checkpoints.view_choice import choose_view

__all__ = ["bring", "choose_view", "described", "opened", "pasted", "shelf", "show", "take_away"]
