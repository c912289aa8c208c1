"""docs/architecture.md says who imports whom, as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .tree import ROOT, read

PACKAGE = ROOT / "mqlab"
EVERYBODYS = {"errors", "arguments", "lazy"}
FREE = {"labs", "ipython", "commands"}
"""What may import anything of the core."""


def stated() -> dict[str, set[str]]:
    """Part -> the parts that the page says it imports; the list goes on in the last column of the lines below it."""
    _, layout = read("docs/architecture.md").split("## Layout and direction of imports", 1)
    found: dict[str, set[str]] = {}
    part = ""
    for line in re.findall(r"(?m)^    (.+)$", layout.split("namesrv, broker and client never", 1)[0]):
        name = re.match(r"mqlab/(\w+)(?:\.py|/)", line)
        words, arrow, names = line.partition("<- ")
        if name:
            part = name[1]
            found[part] = set()
        elif not arrow:
            names = re.split(r" {3,}", words)[-1] if words.startswith(" ") else ""
        found[part] |= {word for word in re.findall(r"\w+", names) if (PACKAGE / word).exists() or is_module(word)}
    return found


def is_module(name: str) -> bool:
    return (PACKAGE / f"{name}.py").is_file()


def imports_of(path: Path) -> Iterator[str]:
    """The parts of the package that a module imports, also inside functions and for types."""
    package = [*path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = [*base, *(node.module.split(".") if node.module else [])]
            names = [whole, *([*whole, alias.name] for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "mqlab" and len(name) > 1 and ((PACKAGE / name[1]).is_dir() or is_module(name[1])):
                yield name[1]


@pytest.mark.parametrize(("part", "names"), [item for item in stated().items() if item[0] not in FREE])
def test_a_part_imports_what_the_page_says(part: str, names: set[str]) -> None:
    folder = PACKAGE / part
    modules = sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]
    imported = {name for module in modules for name in imports_of(module)} - {part} - EVERYBODYS
    told = f"say in docs/architecture.md what {part} imports: {', '.join(sorted(imported))}"
    assert imported == names - EVERYBODYS, told


def test_every_part_stands_on_the_page() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert modules | packages == set(stated())
