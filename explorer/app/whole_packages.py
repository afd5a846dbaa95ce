"""Imports the packages that import their own modules, before anything imports one of these.

A thread that imports such a package and another that imports a module of it wait for each other.
Python then gives one of them half a module, and the page of one of the first readers fails. So
every thread of the server imports this first: here each package comes whole, in one order.
"""

from importlib import import_module

PACKAGES = ("torch", "models", "models.families", "explorer.text", "explorer.tasks")

for name in PACKAGES:
    import_module(name)
