"""What the bets of a lab come to for several students: which truths their ids change.

The cells run in this process, one after the other, without a kernel: magic lines and checks are left out, and a cell
that may raise may.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import os
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

from mqlab.check import notebook_bets
from mqlab.check.bets import Bet
from mqlab.labs.execute import SMALL_DATA
from mqlab.labs.source import Cell, LabSource, text_argument
from mqlab.labs.whys import one_reason_for_two

ONE_SPARK = ("MQLAB_SPARK_MASTER", "local[1]")
"""The Spark of all labs that are played, since one process has one: the one that lab 25 asks for."""


@dataclass(frozen=True, slots=True)
class Truths:
    """The name of a bet, and what was seen for each student; whether one reason was given for two different choices."""

    name: str
    truths: tuple[str, ...]
    contradicts: bool = False

    @property
    def same_for_all(self) -> bool:
        """Whether the students could copy from each other."""
        return len(set(self.truths)) == 1

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(dict.fromkeys(self.truths))}"


def student_ids(count: int) -> list[str]:
    """So many made-up students: the same ones every time."""
    return [f"student-{number}" for number in range(1, count + 1)]


def truths_of(lab: LabSource, ids: Sequence[str]) -> list[Truths]:
    """The bets of a lab in their order, each with what comes of it for these students."""
    seen = [_play(lab, student_id) for student_id in ids]
    names = [text_argument(call) or "" for cell in lab.tagged("prediction") for call in cell.calls("predict")]
    return [
        Truths(name, tuple(bets[name].seen for bets in seen), one_reason_for_two(bets[name] for bets in seen))
        for name in names
    ]


def _play(lab: LabSource, student_id: str) -> dict[str, Bet]:
    """Run the lab for one student, and take its bets as they were revealed."""
    names: dict[str, Any] = {"__name__": f"lab_{lab.name}"}
    before = notebook_bets.take_all()
    for variable in (SMALL_DATA, ONE_SPARK):
        os.environ.setdefault(*variable)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            asyncio.run(_run(lab, student_id, names))
        return notebook_bets.take_all()
    finally:
        notebook_bets.put_back(before)


async def _run(lab: LabSource, student_id: str, names: dict[str, Any]) -> None:
    for cell in lab.cells:
        if cell.kind == "code" and "check" not in cell.tags:
            if "raises-exception" in cell.tags:
                with suppress(Exception):
                    await _run_cell(lab, cell, names)
            else:
                await _run_cell(lab, cell, names)
        if "parameters" in cell.tags:
            names["student_id"] = student_id


async def _run_cell(lab: LabSource, cell: Cell, names: dict[str, Any]) -> None:
    code = compile(cell.tree, f"labs/{lab.name}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    # The cells of a lab are the project's own code, run as the notebook runs them.
    waiting = eval(code, names)  # noqa: S307
    if inspect.isawaitable(waiting):
        await waiting
