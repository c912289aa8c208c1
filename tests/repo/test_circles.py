"""Modules that know each other in a circle, be it only by types, can only be read together: the circles stay small."""

from __future__ import annotations

import grimp
import pytest

MOST = {"mqlab.broker": 9, "mqlab.client": 9, "mqlab.sim": 8, "mqlab": 9, "mqlab_widgets": 8, "mqlab_spark": 1}
"""How many modules the largest circle of a package may have."""


def largest_circle(package: str) -> set[str]:
    """The largest set of modules of the package each of which imports every other, directly or not.

    A package's own `__init__` is left out: it gathers names for those outside.
    """
    graph = grimp.build_graph(package.split(".", maxsplit=1)[0])
    for name in graph.modules:
        if graph.find_children(name):
            for imported in graph.find_modules_directly_imported_by(name):
                graph.remove_import(importer=name, imported=imported)
    largest: set[str] = set()
    for module in graph.modules:
        if f"{module}.".startswith(f"{package}."):
            above, below = graph.find_upstream_modules(module), graph.find_downstream_modules(module)
            largest = max(largest, (above & below) | {module}, key=len)
    return largest


@pytest.mark.parametrize(("package", "most"), MOST.items())
def test_no_circle_is_larger_than_it_was(package: str, most: int) -> None:
    circle = largest_circle(package)
    assert len(circle) <= most, f"these know each other in a circle: {sorted(circle)}"
