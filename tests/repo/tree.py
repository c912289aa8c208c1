"""The repository's files, for the checks in this directory."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def committed_files() -> Iterator[Path]:
    """Every file that is in the repository, or would be with the next `git add`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in sorted(set(listing.stdout.decode().split("\0")) - {""}):
        path = ROOT / name
        if path.is_file():
            yield path


def read(name: str) -> str:
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name: str) -> set[str]:
    """The pins of a requirement file, `name==version ; marker`, without their hashes."""
    return set(re.findall(r"(?m)^([a-z0-9][^\\\n]*?) \\$", read(f"requirements/{name}.txt")))


def make_targets() -> dict[str, str]:
    """The targets that people type, each with what `make help` says of it."""
    return dict(re.findall(r"(?m)^([a-z-]+):.*?## (.+)$", read("Makefile")))
