"""JupyterLite with the labs: a JupyterLab that is files alone, with a Python that runs in the reader's browser.

Everything comes from this machine: Pyodide as npm has put it down, the wheels of requirements/lite.txt, and mqlab's
own from the clone. They are put into Pyodide's list of packages with their hashes, and what is not there is struck off
the list, so that nothing is ever asked of another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from hashlib import sha256
from pathlib import Path
from typing import Any

import jupyter_server

from mqlab.labs.my_labs import copy_labs
from mqlab.labs.slides_page import needs_spark
from website.notebook_for_lite import for_lite

PACKAGES = ("mqlab", "ipywidgets", "anywidget")
"""What is there when a notebook's kernel has started; the rest comes as what these need."""
KERNEL = "@jupyterlite/pyodide-kernel-extension"
"""The Python, as an extension of JupyterLab: among what was fetched for the site."""
EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
"""The installed extensions of JupyterLab that the page has, too: what shows live views."""
OWN_EXTENSIONS = Path("widgets") / "jupyter" / "share" / "labextensions"
"""Where mqlab's own lie, in the clone."""
_DOC_LINK = re.compile(r"\[([^\]]+)\]\(docs/[^)]*\)")
OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
"""What a browser takes of Pyodide; the rest is for Node and for types."""


def runs_without_spark(lab: str) -> bool:
    """Whether a lab, by its name, can be played there: those that need Spark can't."""
    return not needs_spark(Path(lab))


def build_lite(root: Path, parts: Path, target: Path) -> None:
    """Write JupyterLite into `target`.

    `parts` has `wheels/`, `labextensions/` and Pyodide in `node_modules/pyodide/`.
    """
    work = target.parent / ".lite"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    _write_pyodide(root, parts, work / "static" / "pyodide")
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


def _write_pyodide(root: Path, parts: Path, into: Path) -> None:
    """Pyodide with all wheels beside it, and its list of packages: only these, with their hashes."""
    into.mkdir(parents=True)
    pyodide = parts / "node_modules" / "pyodide"
    for name in OF_PYODIDE:
        shutil.copyfile(pyodide / name, into / name)
    for wheel in (parts / "wheels").glob("*.whl"):
        shutil.copyfile(wheel, into / wheel.name)
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    # The labs lie beside it as files.
    bare = {**os.environ, "MQLAB_BUILD": "bare"}
    subprocess.run([*make, "--wheel-dir", str(into), str(root)], env=bare, check=True)
    listing = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    listing["packages"] = packages(listing["packages"], sorted(into.glob("*.whl")))
    (into / "pyodide-lock.json").write_text(json.dumps(listing, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def packages(known: dict[str, Any], wheels: list[Path]) -> dict[str, Any]:
    """Pyodide's entries for these wheels; what they need is taken from the wheels themselves, as far as it is there."""
    here = {_name(_metadata(wheel)["Name"]): wheel for wheel in wheels}
    entries: dict[str, Any] = {}
    for name, wheel in here.items():
        metadata = _metadata(wheel)
        needs = {_name(line) for line in metadata.get_all("Requires-Dist") or [] if "extra ==" not in line}
        # What mqlab's live views need is an extra of it.
        needs |= {"ipywidgets", "anywidget"} if name == "mqlab" else set()
        entries[name] = {
            "depends": sorted(needs & here.keys() - {name}),
            "file_name": wheel.name,
            "imports": known.get(name, {}).get("imports") or _imports(wheel),
            "install_dir": "site",
            "name": metadata["Name"],
            "package_type": "package",
            "sha256": sha256(wheel.read_bytes()).hexdigest(),
            "unvendored_tests": False,
            "version": metadata["Version"],
        }
    return entries


def _name(requirement: str) -> str:
    """The name in a requirement, as lists of packages write it."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)


def _metadata(wheel: Path) -> Any:
    with zipfile.ZipFile(wheel) as archive:
        (inside,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(inside).decode())


def _imports(wheel: Path) -> list[str]:
    """The names that can be imported from a wheel: its packages and single modules."""
    with zipfile.ZipFile(wheel) as archive:
        paths = [name.split("/") for name in archive.namelist()]
    found = {path[0] for path in paths if len(path) == 2 and path[1] == "__init__.py"}
    return sorted(found | {path[0].removesuffix(".py") for path in paths if len(path) == 1 and path[0].endswith(".py")})


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
    kernel = {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": list(PACKAGES)}}
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
