"""The table of all marks: CSV and Parquet, and the forms in which nbgrader and otter hand on theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mqlab.grading.roster import Member
from mqlab.grading.table import write_csv
from mqlab.grading.wide_gradebook import by_hand_in_words, write_wide

Results = Sequence[dict[str, Any]]


def rows_of(results: Results) -> list[dict[str, Any]]:
    """One row for each student and lab, with the points of each check.

    `before_late` is what was reached before anything was taken for being late, `arrived` when the notebook came in,
    `late` by how much it was late, `by_hand` what was set by hand and why.
    """
    rows = []
    for result in results:
        row = {"student": result["student"], "lab": result["lab"], "points": result["points"], "most": result["most"]}
        row["before_late"] = result.get("before_late", result["points"])
        row["arrived"] = result.get("arrival", {}).get("at", "")
        row["late"] = result.get("late", {}).get("told", "")
        row["by_hand"] = "; ".join(map(by_hand_in_words, result.get("by_hand", [])))
        row["remarks"] = "; ".join([*([result["unreadable"]] if result["unreadable"] else []), *result["remarks"]])
        row["run"] = result["run"]["verdict"] if result["run"] else ""
        row |= {mark["check"]: mark["points"] for mark in result["marks"]}
        rows.append(row)
    return rows


def write_gradebook(results: Results, out: Path, members: Sequence[Member] = ()) -> None:
    """gradebook.csv, gradebook.parquet (a row for each check), and what other systems take, in that directory.

    canvas.csv and moodle.csv have a row for each student and a column for each lab; nbgrader.csv and otter.csv are as
    nbgrader and otter write theirs. Names and addresses are those of the members.
    """
    known = {member.id.lower(): member for member in members}
    rows = rows_of(results)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    write_csv(out / "gradebook.csv", columns, rows)
    write_csv(out / "nbgrader.csv", _NBGRADER, (_as_nbgrader(result, _member(known, result)) for result in results))
    write_wide(results, out, members)
    otter = [_as_otter(result) for result in results]
    checks = dict.fromkeys(mark["check"] for result in results for mark in result["marks"])
    write_csv(out / "otter.csv", ["file", *checks, "percent_correct"], otter)
    _write_parquet(out / "gradebook.parquet", results)


_NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score",
             "late_submission_penalty", "score", "max_score")  # fmt: skip
"""The columns of nbgrader's own exporter: https://github.com/jupyter/nbgrader, nbgrader/plugins/export.py."""


def _member(known: Mapping[str, Member], result: Mapping[str, Any]) -> Member:
    return known.get(result["student"].lower()) or Member(result["student"])


def _as_nbgrader(result: dict[str, Any], member: Member) -> dict[str, Any]:
    late = result.get("late", {})
    own = {"assignment": result["lab"], "duedate": late.get("due", ""), "student_id": result["student"]}
    own["timestamp"] = result.get("arrival", {}).get("at", "")
    own |= {"last_name": member.last_name, "first_name": member.first_name, "email": member.email}
    raw = result.get("before_late", result["points"])
    points = {"raw_score": raw, "score": result["points"], "max_score": result["most"]}
    return {**own, "late_submission_penalty": late.get("taken", 0), **points}


def _as_otter(result: dict[str, Any]) -> dict[str, Any]:
    """A row of otter's final_grades.csv: the file, the points of each question, and the share of all points.

    https://github.com/ucbds-infra/otter-grader, otter/grade/containers.py and otter/grade/__init__.py.
    """
    share = result["points"] / result["most"] if result["most"] else 0
    own = {"file": f"{result['student']}/{result['lab']}.ipynb"}
    return {**own, **{mark["check"]: mark["points"] for mark in result["marks"]}, "percent_correct": round(share, 4)}


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
            ("judged", pa.float64()),
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
            "judged": mark.get("judged", mark["points"]),
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
