"""The parts of the Train page: the form, the run that is shown, and how both are worded."""

from explorer.views.training.live_attention import preview
from explorer.views.training.live_run import show
from explorer.views.training.run_choice import choose_run, earlier_runs, open_elsewhere
from explorer.views.training.run_form import asked_for, form

__all__ = ["asked_for", "choose_run", "earlier_runs", "form", "open_elsewhere", "preview", "show"]
