"""Data sets: many worlds of one recipe, each recorded in a file of its own; their pages, and the names of worlds."""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab.data_sets.recipe import (
        CARD,
        LATE,
        LOST,
        TWICE,
        Recipe,
        Size,
        file_name,
        hidden,
        judge,
        make,
        read_recipe,
        recipes,
        verify,
        world,
    )

__all__ = [
    "CARD",
    "LATE",
    "LOST",
    "TWICE",
    "Recipe",
    "Size",
    "file_name",
    "hidden",
    "judge",
    "make",
    "read_recipe",
    "recipes",
    "verify",
    "world",
]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "recipe"))
