"""The former name of `persistent_choices`, until every view uses the new one."""

from explorer.app.persistent_choices import Folded, Text, as_text

__all__ = ["Folded", "Text", "as_text"]
