"""`python requirements/wheelhouse.py [--spark]`: all that the labs need, in a directory for rooms without internet.

The wheels are those that the requirement files pin, checked against their hashes, for this Python on this kind of
machine. mqlab's own wheel, which has the labs in it, lies beside them. PySpark is published as source:
with `--spark` it is built here, once, so that it is a file to unpack there, too.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = """\
# mqlab without internet

Everything for the labs{spark}, for {python} on {machine}. It needs nothing but this directory and that Python:

    python{version} -m venv ~/mqlab && ~/mqlab/bin/pip install --no-index -f wheels --require-hashes -r requirements.txt
    ~/mqlab/bin/mqlab lab --to ~/my-labs

The first is typed in this directory: it installs ({count} wheels, {megabytes:.0f} MB), and refuses a file whose hash
is another one. The second copies the labs to a directory to work in, and opens the first of them.{java}
"""
JAVA = " Spark needs a Java 17 or newer on each machine;\n`~/mqlab/bin/mqlab doctor` says whether there is one."


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the directory, and say how large it is."""
    parser = argparse.ArgumentParser(prog="python requirements/wheelhouse.py", description=__doc__)
    parser.add_argument("--spark", action="store_true", help="with Spark, for the labs 20 to 25 (450 MB more)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "wheelhouse", help="default: out/wheelhouse")
    options = parser.parse_args(arguments)
    target = options.out.resolve()
    if target.exists() and any(target.iterdir()) and not (target / "wheels").is_dir():
        parser.error(f"{target} has other files in it; name an empty directory")
    shutil.rmtree(target, ignore_errors=True)
    wheels = target / "wheels"
    wheels.mkdir(parents=True)
    collect(wheels, spark=options.spark)
    _write_list(target)
    _write_readme(target, spark=options.spark)
    print(
        f"{target}: {len(list(wheels.iterdir()))} wheels, {_megabytes(target):.0f} MB; README.md says how to install"
    )
    return 0


def collect(wheels: Path, *, spark: bool) -> None:
    """Fetch the pinned wheels, and build what is published as source, and mqlab itself."""
    _pip("download", "--only-binary=:all:", "--require-hashes", "-r", "requirements/labs.txt", "--dest", str(wheels))
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels))
    if spark:
        _pip(*build, "--require-hashes", "-r", "requirements/spark.txt")
    _pip(*build, "--no-index", ".")


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], cwd=ROOT, check=True)


def _write_list(target: Path) -> None:
    """requirements.txt: every wheel with its hash, whether it was fetched or built."""
    lines = []
    for wheel in sorted((target / "wheels").glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        lines.append(f"{name}=={version} --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")
    (target / "requirements.txt").write_text("".join(lines), encoding="utf-8")


def _write_readme(target: Path, *, spark: bool) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = README.format(
        spark=", with Spark" if spark else " 00 to 19, 30 and 31",
        python=f"{platform.python_implementation()} {version}",
        version=version,
        machine=sysconfig.get_platform(),
        count=len(list((target / "wheels").iterdir())),
        megabytes=_megabytes(target / "wheels"),
        java=JAVA if spark else "",
    )
    (target / "README.md").write_text(text, encoding="utf-8")


def _megabytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
