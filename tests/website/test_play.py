"""What is compared of a lab that was played in a browser: what its cells say, but for what only who has bet is told."""

from __future__ import annotations

from typing import Any

from mqlab.check.bets import REVEAL_MIME, REVEALED_MIME
from website.play import texts

VALUE = {"output_type": "execute_result", "data": {"text/plain": "42"}}
PRINTED = {"output_type": "stream", "name": "stdout", "text": "so it is"}
PICTURE = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}}


def cell(*outputs: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"metadata": {"tags": tags}, "outputs": list(outputs)}


def test_values_and_what_is_printed_are_compared() -> None:
    assert texts(cell(VALUE, PRINTED, PICTURE)) == ["42", "so it is", ""]


def test_what_is_said_of_bets_and_what_differs_from_run_to_run_is_not() -> None:
    one, all_of_them = ({"data": {"text/plain": "it is: 7", mime: {}}} for mime in (REVEAL_MIME, REVEALED_MIME))
    assert texts(cell(one, VALUE, all_of_them)) == ["42"]
    assert texts(cell(VALUE, tags=("nbval-ignore-output",))) == []
