"""An output is committed only if it is the same on every machine, in every run, and small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.labs.errors import LabError
from mqlab.labs.outputs import LIMIT_BYTES, WIDGET, settle_outputs

BOKEH = {"application/javascript": "draw()", "application/vnd.bokehjs_exec.v0+json": ""}


def notebook(*cells: tuple[list[dict[str, Any]], list[str]]) -> dict[str, Any]:
    """A notebook of code cells, each given by its outputs and tags."""
    made = [
        {
            "cell_type": "code",
            "source": "show()",
            "execution_count": at,
            "outputs": outputs,
            "metadata": {"tags": tags} if tags else {},
        }
        for at, (outputs, tags) in enumerate(cells, 1)
    ]
    return {"cells": made}


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def shown(**data: Any) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {mime.replace("__", "/"): data[mime] for mime in data},
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("/home" "/anna/mqlab/x.py", "a path of this machine"),
        ("/Users" "/anna/x", "a path of this machine"),
        ("saved to /tmp" "/trace.jsonl", "a path of this machine"),
        ("/usr/lib/python3/site-packages/x", "a path of this machine"),
        (str(Path.cwd()), "a path of this machine"),
        ("<Broker object at 0x7f3c5a>", "an address in memory"),
        ("0x7f1234567890", "an address in memory"),
        ("0b1f6c1e-3c8e-4e0e-9c66-5d1d0c9b7a11", "a random id"),
    ],
)
def test_what_differs_between_machines_or_runs_is_refused(text: str, what: str) -> None:
    with pytest.raises(LabError) as refused:
        settle_outputs("90_batches", notebook(([printed(text)], [])))
    assert what in str(refused.value)
    assert "code cell 1 ('show()')" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "magic code 0xdaa320a7 at offset 0x10",
        "msgId 0A000002000018B4AAC2130E5C2B0000",
        "tags code 0x00000000000007E1",
        "store/commitlog/00000000000000000000",
        "trace hash 6b1c2f0e9d7a4c55",
    ],
)
def test_what_rocketmq_shows_is_kept(text: str) -> None:
    kept = notebook(([printed(text)], []))
    settle_outputs("90_batches", kept)
    assert kept["cells"][0]["outputs"] == [printed(text)]


def test_an_address_in_a_picture_is_found_too() -> None:
    drawn = shown(**{"image__svg+xml": "<svg><!-- Node at 0x7f3c5a --></svg>"})
    with pytest.raises(LabError, match="an address in memory"):
        settle_outputs("90_batches", notebook(([drawn], [])))


def test_large_outputs_are_refused() -> None:
    with pytest.raises(LabError, match=r"its outputs have 200,\d{3} bytes; at most 200,000 are kept"):
        settle_outputs("90_batches", notebook(([printed("x" * LIMIT_BYTES)], [])))


def test_of_a_widget_its_text_is_kept() -> None:
    live = shown(text__plain="hold table: 3 pulls", text__html="<svg/>", **{WIDGET: {"model_id": "ab12"}})
    kept = notebook(([live], []))
    settle_outputs("90_batches", kept)
    assert kept["cells"][0]["outputs"][0]["data"] == {"text/plain": "hold table: 3 pulls"}


def test_a_widget_without_a_text_is_refused() -> None:
    with pytest.raises(LabError, match="a widget without a twin in text"):
        settle_outputs("90_batches", notebook(([shown(text__html="<svg/>", **{WIDGET: {"model_id": "ab12"}})], [])))


def test_a_bokeh_picture_wants_the_tag() -> None:
    with pytest.raises(LabError, match=r"shows a script .*; tag the cell `nbval-ignore-output`"):
        settle_outputs("90_batches", notebook(([shown(**BOKEH)], [])))


def test_a_bokeh_picture_wants_a_static_one_behind_it() -> None:
    with pytest.raises(LabError, match="show a static one of the same data in the next cell"):
        settle_outputs("90_batches", notebook(([shown(**BOKEH)], ["nbval-ignore-output"]), ([], [])))


def test_ignored_outputs_are_not_kept() -> None:
    kept = notebook(([shown(**BOKEH)], ["nbval-ignore-output"]), ([printed("15.0 to 20.1 s")], []))
    settle_outputs("90_batches", kept)
    assert [cell["outputs"] for cell in kept["cells"]] == [[], [printed("15.0 to 20.1 s")]]


def test_a_traceback_is_cut_to_its_last_line() -> None:
    error = {
        "output_type": "error",
        "ename": "MQClientException",
        "evalue": "no route",
        "traceback": ["\x1b[31m---\x1b[0m", "File /home" "/anna/mqlab/client/producer.py:12"],
    }
    kept = notebook(([error], ["raises-exception"]))
    settle_outputs("90_batches", kept)
    assert kept["cells"][0]["outputs"][0]["traceback"] == ["MQClientException: no route"]


def test_every_cell_has_run_once_from_the_top() -> None:
    jumbled = notebook(([], []), ([], []))
    jumbled["cells"][1]["execution_count"] = 7
    with pytest.raises(LabError, match=r"did not run once each, from the top: \[1, 7\]"):
        settle_outputs("90_batches", jumbled)
