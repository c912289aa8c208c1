"""Parameters of a notebook beside the id: what marking makes of them, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.check import seed_for
from mqlab.errors import LearnerError
from mqlab.grading.confine import Limits
from mqlab.grading.running import run_notebook
from mqlab.grading.submission import other_parameters, read_submission
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from mqlab.labs.source import LabSource
from mqlab_spark.background import size_of

SOURCES = Path(__file__).parents[2] / "labs" / "sources"


@pytest.fixture
def spark_lab() -> LabSource:
    return read_lab(SOURCES / "21_where_the_time_went.py")


def code(source: str, *tags: str) -> dict[str, Any]:
    """A cell of a notebook."""
    metadata = {"tags": list(tags)}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def test_another_parameter_than_the_labs_is_a_remark(spark_lab: LabSource, tmp_path: Path) -> None:
    path = tmp_path / "21_where_the_time_went.ipynb"
    notebook = make_notebook(spark_lab, "student")
    path.write_text(json.dumps(notebook))
    assert read_submission(path, "ada", spark_lab).remarks == []
    notebook["cells"].append(code('size = "million"', "injected-parameters"))
    path.write_text(json.dumps(notebook))
    remarks = read_submission(path, "ada", spark_lab).remarks
    assert remarks == ["it was handed in with size = 'million'; marking takes size = ''"]


def test_everybody_is_marked_with_the_labs_own_parameters(spark_lab: LabSource, tmp_path: Path) -> None:
    parameters = {**other_parameters(spark_lab), "student_id": "ada"}
    assert parameters == {"size": "", "student_id": "ada"}
    cells = [
        code('student_id, size = "eve", "small"', "parameters"),
        code('student_id = "eve"\nsize = "million"', "injected-parameters"),
        code("print(student_id, [size])"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "21.ipynb").write_text(json.dumps(made))
    out = tmp_path / "executed.ipynb"
    assert run_notebook(tmp_path / "21.ipynb", parameters, out, Limits()).verdict == "ok"
    (told,) = json.loads(out.read_text())["cells"][-1]["outputs"]
    assert "".join(told["text"]) == "ada ['']\n"


def test_a_size_that_there_is_not_is_refused() -> None:
    assert size_of("small", small=1, million=9) == 1
    with pytest.raises(LearnerError, match="there is no size 'huge'"):
        size_of("huge", small=1, million=9)


def test_an_id_that_papermill_has_made_a_number_is_refused() -> None:
    number: Any = 7
    with pytest.raises(LearnerError, match="papermill: -r student_id 7"):
        seed_for(number, "05")
