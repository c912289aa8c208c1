"""`python -m website`: the web site, in out/site. The parts of JupyterLite are fetched by `make site`."""

from __future__ import annotations

import argparse
import shutil
import sys
from functools import partial
from pathlib import Path

from mqlab.errors import LearnerError
from website.lite import PYODIDE, build_lite, build_wheels, hand_in_of, runs_without_spark
from website.live_pages import keep_page_python
from website.pictures import views_of
from website.static import build_pages


def main() -> int:
    """Build the site, and say how large it is."""
    parser = argparse.ArgumentParser(prog="python -m website", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/site"), help="where to write it (default: out/site)")
    parser.add_argument("--parts", type=Path, default=Path(".cache/site"), help="where JupyterLite's parts lie")
    parser.add_argument("--no-lite", action="store_true", help="the pages alone, in seconds")
    parser.add_argument("--no-pictures", action="store_true", help="run no lab: live views are shown as text")
    hand_in = "the teacher's settings of handing in, for all who play there: a form (docs/grading.md)"
    parser.add_argument("--hand-in", type=Path, metavar="FILE", help=hand_in)
    options = parser.parse_args()
    try:
        settings = hand_in_of(options.hand_in)
    except LearnerError as problem:
        parser.error(str(problem))
    root, target = Path.cwd(), options.out.resolve()
    if target.exists() and any(target.iterdir()) and not (target / "style.css").exists():
        parser.error(f"{target} has other files in it; name an empty directory")
    shutil.rmtree(target, ignore_errors=True)
    pictures = partial(_views, root, options.parts.resolve() / "views")
    pages = build_pages(root, target, (lambda _: {}) if options.no_pictures else pictures)
    print(f"{len(pages)} pages: {_size(target)}")
    if not options.no_lite:
        wheels = build_wheels(root, options.parts.resolve())
        build_lite(root, options.parts.resolve(), wheels, target / "lite", settings)
        keep_page_python(options.parts.resolve() / PYODIDE, wheels, target / "play" / "python.gz")
        print(f"JupyterLite: {_size(target / 'lite')}")
    print(f"the web site: {target}")
    return 0


def _views(root: Path, kept: Path, notebook: Path) -> dict[int, str]:
    """The pictures of a lab's live views; none where the lab needs Spark, since running those takes many minutes."""
    return views_of(root, notebook, kept) if runs_without_spark(notebook.name) else {}


def _size(directory: Path) -> str:
    return f"{sum(path.stat().st_size for path in directory.rglob('*') if path.is_file()) / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
