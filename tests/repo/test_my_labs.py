"""`mqlab my-labs`: students work in a copy that no update overwrites; it is trusted, and its links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from nbformat import read
from nbformat.sign import NotebookNotary

from mqlab.commands.my_labs import main
from mqlab.labs.my_labs import copy_labs

from .tree import ROOT


def notebook(*sources: str, text: str = "See [events](../docs/events.md).") -> dict[str, Any]:
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}]
    output = {"output_type": "display_data", "data": {"text/html": "<b>drawn</b>"}, "metadata": {}}
    cells += [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": source,
            "execution_count": 1,
            "outputs": [output],
        }
        for number, source in enumerate(sources)
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def write(path: Path, made: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), encoding="utf-8")


def sources(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells[1:]]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    write(tmp_path / "labs" / "00_tour.ipynb", notebook("1", "predict(...)"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "events.md").write_text("# Events\n", encoding="utf-8")
    copy_labs(tmp_path, tmp_path / "my-labs")
    return tmp_path


def test_a_copy_is_trusted_so_that_pictures_are_drawn_before_the_first_cell_runs(clone: Path) -> None:
    assert NotebookNotary().check_signature(read(clone / "my-labs" / "00_tour.ipynb", as_version=4))


def test_a_copy_that_was_made_elsewhere_is_trusted_by_the_jupyter_that_opens_it(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(clone / "the jupyter of make"))
    mine = clone / "my-labs" / "00_tour.ipynb"
    assert not NotebookNotary().check_signature(read(mine, as_version=4))
    copy_labs(clone, clone / "my-labs")
    assert NotebookNotary().check_signature(read(mine, as_version=4))


def test_outputs_that_have_changed_reach_a_copy_that_nobody_has_run(clone: Path) -> None:
    mine = clone / "my-labs" / "00_tour.ipynb"
    made = notebook("1", "predict(...)")
    made["cells"][1]["outputs"][0]["data"] = {"text/html": "<b>drawn anew</b>"}
    write(clone / "labs" / "00_tour.ipynb", made)
    copy_labs(clone, clone / "my-labs")
    assert "drawn anew" in mine.read_text(encoding="utf-8")
    run = json.loads(mine.read_text(encoding="utf-8"))
    run["cells"][1]["outputs"] = []
    write(mine, run)
    copy_labs(clone, clone / "my-labs")
    assert json.loads(mine.read_text(encoding="utf-8"))["cells"][1]["outputs"] == []


def test_what_comes_of_a_bet_is_not_in_the_copy_at_all(clone: Path) -> None:
    made = notebook("predict(...)", "37 / 2")
    made["cells"][2]["metadata"] = {"collapsed": True, "jupyter": {"outputs_hidden": True}}
    write(clone / "labs" / "00_tour.ipynb", made)
    copy_labs(clone, clone / "my-labs")
    bet, end = json.loads((clone / "my-labs" / "00_tour.ipynb").read_text(encoding="utf-8"))["cells"][1:]
    assert bet["outputs"] != []
    assert (end["outputs"], end["execution_count"]) == ([], None)
    assert sources(clone / "my-labs" / "00_tour.ipynb") == ["predict(...)", "37 / 2"]


def test_links_lead_to_pages_that_are_there(clone: Path) -> None:
    text = (clone / "my-labs" / "00_tour.ipynb").read_text(encoding="utf-8")
    assert re.findall(r"\]\(([^)]*)\)", text) == ["docs/events.md"]
    assert (clone / "my-labs" / "docs" / "events.md").exists()


def test_the_links_of_all_labs_lead_to_pages_that_are_copied() -> None:
    for lab in sorted((ROOT / "labs").glob("*.ipynb")):
        for cell in json.loads(lab.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for link in re.findall(r"\]\((?!https?:)([^)#]*)", text):
                assert (ROOT / "labs" / link).resolve().parent == ROOT / "docs", (lab.name, link)
                assert (ROOT / "labs" / link).exists(), (lab.name, link)


def test_a_copy_that_was_only_run_is_brought_up_to_date(clone: Path) -> None:
    mine = clone / "my-labs" / "00_tour.ipynb"
    run = json.loads(mine.read_text(encoding="utf-8"))
    run["cells"][1]["outputs"] = []
    write(mine, run)
    write(clone / "labs" / "00_tour.ipynb", notebook("2", "predict(...)"))
    assert copy_labs(clone, clone / "my-labs") == []
    assert sources(mine) == ["2", "predict(...)"]


def test_a_copy_with_cells_of_ones_own_is_kept_and_the_new_version_lies_beside_it(clone: Path) -> None:
    mine, beside = (clone / "my-labs" / name for name in ("00_tour.ipynb", "00_tour.new.ipynb"))
    write(mine, notebook("1", "predict(3)", text="See [events](docs/events.md)."))
    assert copy_labs(clone, clone / "my-labs") == []
    assert not beside.exists()
    write(clone / "labs" / "00_tour.ipynb", notebook("2", "predict(...)"))
    assert copy_labs(clone, clone / "my-labs") == [
        "00_tour.ipynb has cells of yours and stays; the lab's new version lies beside it: 00_tour.new.ipynb"
    ]
    assert (sources(mine), sources(beside)) == (["1", "predict(3)"], ["2", "predict(...)"])
    write(beside, notebook("2", "predict(4)"))
    write(clone / "labs" / "00_tour.ipynb", notebook("3", "predict(...)"))
    assert copy_labs(clone, clone / "my-labs") == [
        "00_tour.ipynb and 00_tour.new.ipynb have cells of yours and stay; take one away to get the lab's newer version"
    ]
    assert (sources(mine), sources(beside)) == (["1", "predict(3)"], ["2", "predict(4)"])


def test_a_copy_that_was_thrown_away_comes_again_and_a_torn_one_stays(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = clone / "my-labs" / "00_tour.ipynb"
    mine.unlink()
    assert main(["--root", str(clone)]) == 0
    assert sources(mine) == ["1", "predict(...)"]
    mine.write_text("torn", encoding="utf-8")
    main(["--root", str(clone)])
    assert mine.read_text(encoding="utf-8") == "torn"
    assert capsys.readouterr().out == f"the labs to work in: {clone / 'my-labs'}\n" * 2


@pytest.mark.parametrize("notes", [None, "", '{"00_tour.ip', "[]"])
def test_after_a_copying_that_was_interrupted_nothing_passes_for_somebody_s_own(clone: Path, notes: str | None) -> None:
    path = clone / "my-labs" / ".copied.json"
    path.unlink()
    if notes is not None:
        path.write_text(notes, encoding="utf-8")
    assert copy_labs(clone, clone / "my-labs") == []
    write(clone / "labs" / "00_tour.ipynb", notebook("2", "predict(...)"))
    assert copy_labs(clone, clone / "my-labs") == []
    assert sources(clone / "my-labs" / "00_tour.ipynb") == ["2", "predict(...)"]
    assert sorted(file.name for file in (clone / "my-labs").iterdir()) == [".copied.json", "00_tour.ipynb", "docs"]


def test_a_copy_is_there_when_it_is_whole_or_not_at_all(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(node: object, path: Path) -> None:
        path.write_text('{"cells": [', encoding="utf-8")
        raise KeyboardInterrupt

    mine = clone / "my-labs" / "00_tour.ipynb"
    mine.unlink()
    with monkeypatch.context() as writing:
        writing.setattr("nbformat.write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy_labs(clone, clone / "my-labs")
    assert not mine.exists()
    assert copy_labs(clone, clone / "my-labs") == []
    assert sources(mine) == ["1", "predict(...)"]


def test_nothing_of_it_is_in_the_repository() -> None:
    assert "/my-labs/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
