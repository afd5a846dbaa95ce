"""The old name of explorer.choices, for who has not moved yet."""

from explorer.choices import one_of as one_of
