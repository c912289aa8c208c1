"""JupyterLite with the labs: a JupyterLab that is files alone, with a Python that runs in the reader's browser.

Everything comes from this machine: Pyodide as npm has put it down, the wheels of requirements/lite.txt, and mqlab's
own from the clone. A kernel has all of them when it begins: `python.gz` is the memory of a Python that has imported
them, `site.tar.gz` are their files (`live/python.mjs`). Pyodide's list of packages is empty, so that nothing is ever
asked of another host.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import jupyter_server

import mqlab
from mqlab.check.hand_in import INSTALLED, HandInSettings, read_settings
from mqlab.errors import LearnerError
from mqlab.labs.my_labs import copy_labs
from mqlab.labs.slides_page import needs_spark
from website.live_pages import keep_python
from website.notebook_for_lite import for_lite

OF_KERNEL = ("ipykernel", "piplite", "pyodide_kernel")
"""What comes with JupyterLite's kernel."""
THERE = ("ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "micropip", "piplite")
"""What the kernel does not install, since it is told that it is there."""
KERNEL = "@jupyterlite/pyodide-kernel-extension"
"""The Python, as an extension of JupyterLab: among what was fetched for the site."""
EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
"""The installed extensions of JupyterLab that the page has, too: what shows live views."""
OWN_EXTENSIONS = Path("widgets") / "jupyter" / "share" / "labextensions"
"""Where mqlab's own lie, in the clone."""
_DOC_LINK = re.compile(r"\[([^\]]+)\]\(docs/[^)]*\)")
PYTHON = "python"
"""The directory of the site with the Python that its pages and JupyterLite have."""
PYODIDE = Path("node_modules") / "pyodide"
"""Where it is among what was fetched."""
OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
"""What a browser takes of Pyodide; the rest is for Node and for types."""


def runs_without_spark(lab: str) -> bool:
    """Whether a lab, by its name, can be played there: those that need Spark can't."""
    return not needs_spark(Path(lab))


def hand_in_of(path: Path | None) -> HandInSettings:
    """The teacher's settings in that file, as far as a browser can do what they say; none without a file.

    LearnerError for a file that is not there, or is no such file, and for a folder, which no browser reaches.
    """
    if path is None:
        return HandInSettings()
    if not path.is_file():
        raise LearnerError(f"there is no file {path}", 'write {"form": "https://..."} into it')
    settings = read_settings(path)
    if settings.folder:
        raise LearnerError(f"{path} names a folder, which no browser reaches", "give a form, or nothing")
    return settings


def installed(settings: HandInSettings) -> dict[str, bytes]:
    """The file of the Python in which `hand_in` finds the settings; none where there are none.

    Not beside the labs: what a kernel sees there comes by way of the page, and is now and then not there yet.
    """
    name = INSTALLED.relative_to(Path(mqlab.__file__).parents[1]).as_posix()
    return {name: json.dumps({"form": settings.form}).encode()} if settings.form else {}


def build_lite(root: Path, parts: Path, wheels: list[Path], target: Path, hand_in: HandInSettings) -> None:
    """Write JupyterLite with these wheels into `target`.

    `parts` has `labextensions/`, and Pyodide in `node_modules/pyodide/`.
    """
    work = target.parent / ".lite"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    _write_python(parts, wheels, installed(hand_in), target.parent / PYTHON)
    _write_labs(root, work / "files")
    _write_settings(root, parts, work)
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(work), "--output-dir", str(target)]
    told = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"JupyterLite was not built:\n{told.stdout}{told.stderr}")
    shutil.rmtree(work)
    # JupyterLite's pages ask for these, which only a server has.
    icons = Path(jupyter_server.__file__).parent / "static" / "favicons"
    shutil.copytree(icons, target / "static" / "favicons")
    shutil.copyfile(icons / "favicon.ico", target.parent / "favicon.ico")


def build_wheels(root: Path, parts: Path) -> list[Path]:
    """All wheels of a kernel: those that were fetched, JupyterLite's own, and mqlab's, which is built."""
    built = parts / "built"
    shutil.rmtree(built, ignore_errors=True)
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    # The labs lie beside it as files.
    bare = {**os.environ, "MQLAB_BUILD": "bare"}
    subprocess.run([*make, "--wheel-dir", str(built), str(root)], env=bare, check=True)
    kernel = parts / "labextensions" / KERNEL / "static" / "pypi"
    own = [wheel for name in OF_KERNEL for wheel in kernel.glob(f"{name}-*.whl")]
    return sorted([*(parts / "wheels").glob("*.whl"), *built.glob("*.whl"), *own])


def _write_python(parts: Path, wheels: list[Path], others: dict[str, bytes], into: Path) -> None:
    """Pyodide without any packages, the memory of a Python that has imported these wheels, their files, and others."""
    into.mkdir(parents=True, exist_ok=True)
    pyodide = parts / PYODIDE
    for name in OF_PYODIDE:
        shutil.copyfile(pyodide / name, into / name)
    listing = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    (into / "pyodide-lock.json").write_text(json.dumps({**listing, "packages": {}}) + "\n", encoding="utf-8")
    live = Path(__file__).parent / "live"
    module = [(live / name).read_text(encoding="utf-8") for name in ("unpacked.js", "python.mjs")]
    (into / "python.mjs").write_text("\n".join(module), encoding="utf-8")
    (into / "site.tar.gz").write_bytes(gzip.compress(site_of(wheels, others), 9, mtime=0))
    keep_python(pyodide, into / "python.gz", "keep_lite.py", wheels)


def site_of(wheels: list[Path], others: dict[str, bytes]) -> bytes:
    """The files of wheels as they are installed, and others by name, in one archive; not those that lie outside of a
    Python's packages.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in chain(*map(_files_of, wheels), others.items()):
            head = tarfile.TarInfo(name)
            head.size = len(content)
            tar.addfile(head, io.BytesIO(content))
    return archive.getvalue()


def _files_of(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if not name.endswith("/") and not name.partition("/")[0].endswith(".data"):
                yield name, packed.read(name)


def _write_labs(root: Path, into: Path) -> None:
    """The labs as `mqlab my-labs` copies them, without those that need Spark and without the notes of the copying.

    A page of the documentation is not opened there as it should be, so a link to one says where on the site it is.
    """
    copy_labs(root, into)
    shutil.rmtree(into / "docs")
    for path in into.glob(".*"):
        path.unlink()
    for lab in into.glob("*.ipynb"):
        if not runs_without_spark(lab.name):
            lab.unlink()
            continue
        notebook = for_lite(json.loads(lab.read_text(encoding="utf-8")))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = without_doc_links(cell["source"])
        lab.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def without_doc_links(text: str) -> str:
    """The text of a lab with links to documentation written out, as what one looks for on the site."""
    return _DOC_LINK.sub(r"\1 (on this web site, under Documentation)", text)


def _write_settings(root: Path, parts: Path, work: Path) -> None:
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    known = [parts.resolve() / "labextensions" / KERNEL, *(installed / name for name in EXTENSIONS)]
    extensions = [*known, *sorted((root / OWN_EXTENSIONS).iterdir())]
    build = {
        "apps": ["lab", "notebooks", "tree", "edit"],
        "contents": ["files"],
        "ignore_sys_prefix": True,
        "federated_extensions": list(map(str, extensions)),
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "cache_dir": str(work / "cache"),
    }
    kernel = {
        "disablePyPIFallback": True,
        "pyodideUrl": f"./../{PYTHON}/python.mjs",
        "loadPyodideOptions": {"packages": list(THERE)},
    }
    page = {
        "appName": "mqlab",
        # Tests and `python -m website.play` ask the page itself, not the pixels.
        "exposeAppInBrowser": True,
        "litePluginSettings": {f"{KERNEL}:kernel": kernel},
    }
    (work / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": build}), encoding="utf-8")
    (work / "jupyter-lite.json").write_text(
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": page}), encoding="utf-8"
    )
    overrides = root / "widgets" / "jupyter" / "share" / "lab" / "settings" / "overrides.d" / "mqlab.json"
    shutil.copyfile(overrides, work / "overrides.json")
