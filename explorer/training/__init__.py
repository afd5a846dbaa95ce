"""The parts of the Train page: the form, the run that is shown, and how both are worded."""

from explorer.training.choosing import choose_run, earlier_runs, open_elsewhere
from explorer.training.form import asked_for, form
from explorer.training.live import show
from explorer.training.watching import preview

__all__ = ["asked_for", "choose_run", "earlier_runs", "form", "open_elsewhere", "preview", "show"]
