"""What mqlab brings beside its code: the labs, the pages of the documentation and the recipes of data sets.

In a clone they are the directories `labs`, `docs` and `datasets`. A wheel has copies of them, which its build
(hatch_build.py) puts into mqlab/labs/material under the same names. So there is always one directory, the root, below
which they lie, and what reads them is the same code in a clone and after `pip install`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

PACKED = Path(__file__).parent / "labs" / "material"
"""Where a wheel has them: below mqlab/labs, since the labs' solutions are among them, and what is being marked may read
nothing there."""

INSTALL = "pip install 'mqlab[labs]', or run this in the root of a clone"
"""What to do where they are not."""


def root() -> Path:
    """The directory with `labs`, `docs` and `datasets`: here, in the clone of this mqlab, or in the installed wheel.

    Where there is none, as on a worker of a cluster, it is here, and whoever looks for something says what is missing.
    """
    clone = Path(__file__).parents[1]
    return next((place for place in (Path(), clone) if is_clone(place)), PACKED if PACKED.is_dir() else Path())


def recipes() -> Traversable:
    """Where the recipes of data sets are: below the root, else in the archive that this mqlab is imported from."""
    below = root() / "datasets"
    return below if below.is_dir() else files("mqlab").joinpath("labs", "material", "datasets")


def work_place(read_from: Path) -> Path:
    """Where what is made goes unless told otherwise: here; only where another root was named, there."""
    return Path() if read_from == root() else read_from


def is_clone(place: Path) -> bool:
    """Whether it is the root of a clone, or of an unpacked source distribution."""
    return (place / "pyproject.toml").is_file() and (place / "labs" / "sources").is_dir()


def add_root(parser: ArgumentParser) -> None:
    """Add `--root` to what a command takes: another directory with `labs`, `docs` and `datasets` than `root`."""
    what = "the directory with labs/ and docs/ (default: the clone here, else what mqlab was installed with)"
    parser.add_argument("--root", type=Path, default=root(), help=what)
