"""The first page of docs/spark.md: its commands and its code run as they stand, and print what stands below them."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from mqlab.commands import cli
from mqlab_spark import __main__ as command_line

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
FIRST = re.compile(r"^## From a recipe.*?(?=^## )", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = {"mqlab": cli.main, "python -m mqlab_spark": command_line.main}


@pytest.fixture
def blocks() -> list[tuple[str, str]]:
    """The fenced blocks of the first page: what they are, and what stands in them."""
    found = FIRST.search(PAGE.read_text(encoding="utf-8"))
    assert found
    return FENCED.findall(found[0])


def run(command: str) -> str:
    """What a command of the page prints."""
    words = shlex.split(command, comments=True)
    name = "mqlab" if words[0] == "mqlab" else " ".join(words[:3])
    with redirect_stdout(io.StringIO()) as told, redirect_stderr(io.StringIO()):
        assert COMMANDS[name](words[len(name.split()):]) == 0
    return told.getvalue()


@pytest.mark.slow
def test_the_first_page_runs_as_it_stands(
    spark: SparkSession, blocks: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told, names = "", dict[str, Any]()
    compared = 0
    for kind, text in blocks:
        if kind == "text":
            assert tidy(told) == tidy(text)
            compared += 1
        elif kind == "sh":
            told = "".join(map(run, text.splitlines()))
        else:
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, str(PAGE), "exec"), names)
            told = printed.getvalue()
    assert compared == 9


def tidy(text: str) -> list[str]:
    """Lines without the spaces at their ends."""
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_hadoop_that_the_page_names_is_the_one_that_pyspark_brings() -> None:
    (named,) = set(re.findall(r"org\.apache\.hadoop:hadoop-aws:([\d.]+\d)", PAGE.read_text(encoding="utf-8")))
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    assert jar.stem == f"hadoop-client-api-{named}"
