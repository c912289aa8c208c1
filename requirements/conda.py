"""Write environment.yml, and those of both Binders, from the pinned requirement files.

Binder reads its files in binder/ alone, and conda resolves a `-r` beside the file that has it; so the pins themselves
stand in each, and each is made here.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
WHOLE = ("build", "labs", "spark", "java")
ENVIRONMENTS = {
    "environment.yml": WHOLE,
    "binder-full/environment.yml": WHOLE,
    "binder/environment.yml": ("build", "labs"),
}
"""Each environment file with the sets that are in it."""
# conda brings its own pip; uv is the Makefile's installer.
NOT_LISTED = {"pip", "uv"}

HEAD = """\
# The environment of the labs for conda, and for Binder: conda env create --file environment.yml
# Made by `make lock` from requirements/*.txt. Then: pip install --no-index --no-build-isolation --no-deps --editable .
name: mqlab
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def pins(requirement_file: Path) -> list[str]:
    """The pinned lines of a requirement file, without their hashes: `name==version ; marker`."""
    lines = requirement_file.read_text(encoding="utf-8").splitlines()
    return [line.removesuffix(" \\") for line in lines if re.match(r"[a-zA-Z0-9]", line)]


def environment(sets: tuple[str, ...]) -> str:
    """The text of an environment file with these sets."""
    listed = {pin for name in sets for pin in pins(ROOT / "requirements" / f"{name}.txt")}
    kept = sorted(pin for pin in listed if pin.split("==")[0] not in NOT_LISTED)
    return HEAD + "".join(f'      - "{pin}"\n' for pin in kept)


def main() -> None:
    for name, sets in ENVIRONMENTS.items():
        (ROOT / name).write_text(environment(sets), encoding="utf-8")


if __name__ == "__main__":
    main()
