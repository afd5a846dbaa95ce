"""A former part of `controls`, until every view uses that."""

from explorer.app.controls import slider, whole

__all__ = ["slider", "whole"]
