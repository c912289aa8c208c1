"""What the documentation tells Spark to fetch from Maven is there, asked of wherever Maven is told to look."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.storage.servers import ROOT

COORDINATE = re.compile(r"(?<![\w/.:-])((?:[a-z][\w-]*\.)+[a-z][\w-]*:[\w.-]+:\d[\w.-]*\w)(?![\w:])")
GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"


def named() -> list[str]:
    """Every `group:artifact:version` that a page names."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return sorted({name for page in pages for name in COORDINATE.findall(page.read_text(encoding="utf-8"))})


def test_the_pages_name_some() -> None:
    assert any(name.startswith("org.apache.hadoop:hadoop-aws:") for name in named())


@pytest.mark.parametrize("coordinate", named())
def test_maven_has_it(coordinate: str, tmp_path: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.fail("this asks Maven: install it (apt-get install maven)", pytrace=False)
    told = subprocess.run(
        [maven, "--batch-mode", "--quiet", GET, f"-Dartifact={coordinate}:pom", "-Dtransitive=false",
         f"-Dmaven.repo.local={tmp_path}"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout
