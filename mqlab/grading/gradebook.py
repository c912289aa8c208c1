"""The table of all marks: CSV and Parquet, and the forms in which nbgrader and otter hand on theirs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mqlab.grading.printable import printable

Results = Sequence[dict[str, Any]]
_GUARDED = ("=", "+", "-", "@", "\t", "\r")


def rows_of(results: Results) -> list[dict[str, Any]]:
    """One row for each student and lab, with the points of each check.

    `file_changed` is when the file was changed last, as the marker's file system says; an older marker did not note it.
    """
    rows = []
    for result in results:
        row = {"student": result["student"], "lab": result["lab"], "points": result["points"], "most": result["most"]}
        row["file_changed"] = result.get("changed", "")
        row["remarks"] = "; ".join([*([result["unreadable"]] if result["unreadable"] else []), *result["remarks"]])
        row["run"] = result["run"]["verdict"] if result["run"] else ""
        row |= {mark["check"]: mark["points"] for mark in result["marks"]}
        rows.append(row)
    return rows


def write_gradebook(results: Results, out: Path) -> None:
    """gradebook.csv, gradebook.parquet (a row for each check), nbgrader.csv and otter.csv in that directory."""
    rows = rows_of(results)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    _write_csv(out / "gradebook.csv", columns, rows)
    _write_csv(out / "nbgrader.csv", _NBGRADER, (_as_nbgrader(result) for result in results))
    otter = [_as_otter(result) for result in results]
    _write_csv(out / "otter.csv", list(dict.fromkeys(name for row in otter for name in row)), otter)
    _write_parquet(out / "gradebook.parquet", results)


_NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "raw_score", "late_submission_penalty", "score",
             "max_score")  # fmt: skip


def _as_nbgrader(result: dict[str, Any]) -> dict[str, Any]:
    own = {"assignment": result["lab"], "timestamp": result.get("changed", ""), "student_id": result["student"]}
    points = {"raw_score": result["points"], "score": result["points"], "max_score": result["most"]}
    return {**own, "late_submission_penalty": 0, **points}


def _as_otter(result: dict[str, Any]) -> dict[str, Any]:
    share = result["points"] / result["most"] if result["most"] else 0
    own = {"file": f"{result['student']}/{result['lab']}.ipynb", "percent_correct": round(share, 4)}
    return {**own, "total": result["points"], **{mark["check"]: mark["points"] for mark in result["marks"]}}


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.DictWriter(sink, columns, restval="")
        writer.writeheader()
        writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    unfinished.replace(path)


def _harmless(value: Any) -> Any:
    """A text with what can't be seen written out; what a spreadsheet would take for a formula gets an apostrophe."""
    if isinstance(value, str):
        value = printable(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_GUARDED) else value


def _write_parquet(path: Path, results: Results) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        [
            ("student", pa.string()),
            ("lab", pa.string()),
            ("check", pa.string()),
            ("points", pa.float64()),
            ("most", pa.int64()),
            ("public_passed", pa.int64()),
            ("public_seeds", pa.int64()),
            ("hidden_passed", pa.int64()),
            ("hidden_seeds", pa.int64()),
            ("reason", pa.string()),
        ]
    )
    rows = [
        {
            **{name: mark[name] for name in ("check", "points", "most", "reason")},
            "student": result["student"],
            "lab": result["lab"],
            "public_passed": mark["public"][0],
            "public_seeds": mark["public"][1],
            "hidden_passed": mark["hidden"][0],
            "hidden_seeds": mark["hidden"][1],
        }
        for result in results
        for mark in result["marks"]
    ]
    unfinished = path.with_name(f".{path.name}.unfinished")
    parquet.write_table(pa.Table.from_pylist(rows, schema), unfinished)
    unfinished.replace(path)
