"""After `pip install 'mqlab[all]'`, without a clone: the labs, marking, data sets, the museum."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from .prefix import PURE, ROOT, Prefix, ask, free_port, made

LABS = sorted(path.name for path in (ROOT / "labs").glob("*.ipynb"))

SOLVE = """
import json, sys
from pathlib import Path
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import given_name
from mqlab.material import root

path = Path(sys.argv[1])
lab = read_lab(root() / "labs" / "sources" / f"{path.stem}.py")
solutions = {given_name(lab, cell): cell.source for cell in lab.tagged("exercise")}
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    name = cell["metadata"].get("nbgrader", {}).get("grade_id")
    cell["source"] = solutions.get(name, cell["source"])
path.write_text(json.dumps(notebook))
"""


def test_nothing_that_the_labs_need_is_missing(everything: Prefix) -> None:
    lines = everything.run("mqlab", "doctor").splitlines()
    assert [line for line in lines if line.startswith("missing")] == []
    assert any("mqlab runs interpreted" in line for line in lines)
    for extra in ("labs", "widgets", "spark", "trace", "codecs"):
        assert any(line.startswith(f"ok       {extra}:") for line in lines), extra


def test_mqlab_lab_copies_the_labs_and_serves_them(everything: Prefix) -> None:
    options = ("--no-browser", f"--port={free_port()}", "--ServerApp.port_retries=0")
    with everything.serving("lab", "05", *options, until="/lab?token=") as address:
        assert sorted(path.name for path in (everything.work / "my-labs").glob("*.ipynb")) == LABS
        assert "<title>JupyterLab</title>" in ask(address, "/lab/tree/05_push_is_pull.ipynb")
        notebook = ask(address, "/api/contents/05_push_is_pull.ipynb")["content"]
        hidden = [cell for cell in notebook["cells"] if cell["metadata"].get("jupyter", {}).get("outputs_hidden")]
        assert hidden
        assert all(cell["outputs"] == [] for cell in hidden)
        wanted = {"name": "05", "path": "05_push_is_pull.ipynb", "type": "notebook"}
        session = ask(address, "/api/sessions", {**wanted, "kernel": {"name": "python3"}})
        assert session["kernel"]["execution_state"] in ("starting", "idle", "busy")
    assert (everything.work / "my-labs" / "docs" / "museum.md").is_file()


def test_an_option_that_is_no_lab_is_told_how_it_is_written(everything: Prefix) -> None:
    said = everything.run("mqlab", "lab", "--no-browser", "--port", "9999", status=2)
    assert "there is no lab '9999'" in said
    assert "--port=9999" in said


def test_mqlab_demo_plays(everything: Prefix) -> None:
    with everything.serving("demo", "--no-browser", f"--jupyter=--port={free_port()}", until="/demo.ipynb") as address:
        assert address.startswith("http://")


@pytest.mark.parametrize("lab", ["00_tour", "20_trace"])
def test_a_lab_runs_to_its_end(everything: Prefix, lab: str) -> None:
    assert "1 of 1 labs ok" in everything.run("mqlab", "run", "--only", lab)
    assert (everything.work / "out" / f"{lab}.ipynb").is_file()


def test_a_class_is_given_a_lab_and_marked(everything: Prefix) -> None:
    (everything.work / "class.csv").write_text("id\nada\nbob\n")
    everything.run("mqlab", "course", "key", "course.key")
    everything.run("mqlab", "course", "release", "handed-in", "--students", "class.csv", "--lab", "00")
    solved = everything.work / "handed-in" / "ada" / "00_tour.ipynb"
    everything.run("python", "-c", SOLVE, solved)
    marking = ("--key", "course.key", "--out", "marks", "--hidden", "2", "--students", "class.csv")
    everything.run("mqlab", "grade", "handed-in", *marking)
    rows = list(csv.DictReader((everything.work / "marks" / "gradebook.csv").open()))
    points = {row["student"]: float(row["points"]) for row in rows}
    assert points == {"ada": float(rows[0]["most"]), "bob": 0.0}


def test_data_sets_are_made_and_verified(everything: Prefix) -> None:
    assert "slow-listener: A slow listener" in everything.run("mqlab", "dataset")
    everything.run("mqlab", "dataset", "slow-listener", "sample", "--out", "sample", "-j", "1")
    assert "3,090 events in sample" in everything.run(
        "mqlab", "dataset", "slow-listener", "sample", "--out", "sample", "--verify"
    )
    # A wheel has no samples: what is made is the one of the clone.
    kept = ROOT / "datasets" / "samples" / "slow-listener" / "card.json"
    assert (everything.work / "sample" / "card.json").read_bytes() == kept.read_bytes()


def test_a_data_set_is_built_and_audited_in_an_empty_directory(everything: Prefix) -> None:
    everything.run("mqlab", "dataset", "twice", "sample")
    traces = "out/datasets/twice-sample"
    everything.run("python", "-m", "mqlab_spark", "build", traces, "out/twice")
    assert (everything.work / "out" / "twice" / "catalogue.json").is_file()
    said = everything.run("python", "-m", "mqlab_spark", "audit", traces)
    assert "of what was planted: 1 found, 0 missing; 0 others" in said


def test_the_museum_has_its_page(everything: Prefix) -> None:
    page = (ROOT / "docs" / "museum.md").read_text(encoding="utf-8")
    assert everything.run("mqlab", "museum", "--page") == page
    assert "BROKEN in seed 1:" in everything.run("mqlab", "museum", "7914", status=1)


def test_a_lab_that_runs_writes_nothing_where_mqlab_is_installed(everything: Prefix) -> None:
    everything.run("mqlab", "run", "--only", "00", "--out", "executed")
    packages = everything.packages
    recorded = (next(packages.glob("mqlab-*.dist-info")) / "RECORD").read_text(encoding="utf-8")
    there = {path.relative_to(packages).as_posix() for path in packed(everything).rglob("*") if path.is_file()}
    assert there
    assert [path for path in there if f"{path}," not in recorded] == []


def test_the_wheel_holds_no_answer_to_a_bet_and_is_small(everything: Prefix) -> None:
    assert made(PURE).stat().st_size < 3_500_000
    answers = 0
    for path in packed(everything).glob("labs/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            hidden = cell["metadata"].get("jupyter", {}).get("outputs_hidden", False)
            answers += bool(hidden and cell["outputs"])
    assert answers == 0


def packed(prefix: Prefix) -> Path:
    """Where the labs lie in the environment."""
    return prefix.packages / "mqlab" / "labs" / "material"


def test_a_question_finds_its_page_and_its_world_runs(everything: Prefix) -> None:
    said = everything.run("mqlab", "why", "重启后重复消费", "--run")
    assert said.startswith("Why are messages consumed twice after a restart or a deployment?")
    assert "40 came again" in said
