"""The code as one archive for a cluster's workers: `python -m mqlab_spark.archive out/mqlab-spark.zip`.

Pure Python: mqlab without its labs, and mqlab_spark. pyspark and pyarrow must be on the workers. It has the recipes of
data sets, too, so that with it alone on PYTHONPATH `mqlab dataset`, `build` and `audit` work.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from mqlab import material

PACKAGES = ("mqlab", "mqlab_spark")
LEFT_OUT = ("mqlab/labs/", "mqlab/fast/")
"""The checks of the labs, which no job needs, and what compiles mqlab: the archive is pure Python."""
KEPT = ("mqlab/fast/__init__.py", "mqlab/fast/choice.py")
"""What `import mqlab` takes of it."""
RECIPES = "mqlab/labs/material/datasets"
"""Where a wheel has the recipes, too."""


def write_archive(path: str | Path) -> int:
    """Write the archive, the same bytes each time from the same code; returns how many files it has."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"_{target.name}.unfinished")
    number = 0
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(_files()):
            # A time of its own would make another archive of the same code.
            archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
            number += 1
    unfinished.replace(target)
    return number


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for file in root.rglob("*.py"):
            name = f"{package}/{file.relative_to(root).as_posix()}"
            if not name.startswith(LEFT_OUT) or name in KEPT:
                yield name, file
    for recipe in (material.root() / "datasets").glob("*.toml"):
        yield f"{RECIPES}/{recipe.name}", recipe


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mqlab_spark.archive", description=__doc__)
    parser.add_argument("archive", help="the file to write, a .zip")
    options = parser.parse_args(argv)
    number = write_archive(options.archive)
    print(f"{number} files in {options.archive}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
