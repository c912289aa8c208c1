"""Conditions are read, printed, judged and refused as RocketMQ's `filter` module did it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.filter import FilterEvaluationError, MQFilterException, compile_filter
from mqlab.filter.java_values import CLASS_CAST, java_text
from mqlab.protocol.command import RemotingCommand

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = json.loads((GOLDEN / "vectors" / "sql92.json").read_text(encoding="utf-8"))["rows"]
PROPERTIES = ROWS["propertySets"]
WORKING = [row for row in ROWS["expressions"] if "compileError" not in row]
REFUSED = [row for row in ROWS["expressions"] if "compileError" in row]


def judged(expression: str, properties: dict[str, str]) -> Any:
    try:
        return compile_filter("SQL92", expression).evaluate(properties)
    except FilterEvaluationError as error:
        return {"error": str(error).removeprefix("java.lang.")}


def no_number(text: str) -> dict[str, str]:
    return {"error": f'RuntimeException: java.lang.NumberFormatException: For input string: "{text}"'}


@pytest.mark.parametrize("row", WORKING, ids=lambda row: row["expression"])
def test_a_condition_is_read_printed_and_judged_as_java_does_it(row: dict[str, Any]) -> None:
    assert str(compile_filter("SQL92", row["expression"])) == row["toString"]
    assert [judged(row["expression"], properties) for properties in PROPERTIES] == row["results"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["expression"])
def test_what_is_no_condition_is_refused_in_the_words_of_java(row: dict[str, Any]) -> None:
    with pytest.raises(MQFilterException) as refused:
        compile_filter("SQL92", row["expression"])
    assert f"MQFilterException: {refused.value.message.splitlines()[0]}" == row["compileError"]


def test_an_error_lists_what_could_have_stood_there_as_a_broker_told_its_client() -> None:
    lines = (GOLDEN / "frames" / "client-json.jsonl").read_text(encoding="utf-8").splitlines()
    (frame,) = (json.loads(line) for line in lines if '"seq":568,' in line.replace(" ", ""))
    answer = RemotingCommand.decode(base64.b64decode(frame["frame"]))
    with pytest.raises(MQFilterException) as refused:
        compile_filter("SQL92", "a >")
    assert refused.value.message == answer.remark


@pytest.mark.parametrize(
    ("expression", "line", "column", "shown"),
    [
        ("a > ", 1, 4, "  a > \n     ^"),
        ("a = 1\n  AND b > 'x'", 2, 9, "    AND b > 'x'\n          ^"),
        ("a =\t@ 1", 1, 9, "  a =\t@ 1\n     \t^"),
        ("a BETWEEN 10 AND 1", 1, 3, "  a BETWEEN 10 AND 1\n    ^"),
        ("b = 1 AND c IN (1)", 1, 17, "  b = 1 AND c IN (1)\n                  ^"),
        ("5", 1, 1, "  5\n  ^"),
        ("", 0, 0, "  \n  ^"),
    ],
)
def test_an_error_points_at_its_place(expression: str, line: int, column: int, shown: str) -> None:
    with pytest.raises(MQFilterException) as refused:
        compile_filter("SQL92", expression)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert str(refused.value).endswith("\n" + shown)


@pytest.mark.parametrize(
    ("expression", "listed"),
    [
        # What JavaCC does with words that it has looked for further ahead.
        ("a IS 5", ['"NOT"', '"NULL"']),
        ("a BETWEEN 1 5", ['"AND"']),
        ("a IN ('x' 'y')", ['","', '")"']),
        ("a NOT 5", ["BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH", ">", ">=", "<", "<="]),
    ],
)
def test_the_list_of_an_error(expression: str, listed: list[str]) -> None:
    with pytest.raises(MQFilterException) as refused:
        compile_filter("SQL92", expression)
    _, head, *rest = refused.value.message.splitlines()
    assert head == ("Was expecting:" if len(listed) == 1 else "Was expecting one of:")
    words = [line.strip().removesuffix(" ...") for line in rest if line.strip()]
    assert words == [word if word.startswith('"') else f'"{word}"' for word in listed]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'abc", 'TokenMgrError: Lexical error at line 1, column 5.  Encountered: <EOF> after : "\\\'abc"'),
        (
            "a = 1\n /* no end",
            'TokenMgrError: Lexical error at line 2, column 11.  Encountered: <EOF> after : "/* no end"',
        ),
        ("a = .x", 'TokenMgrError: Lexical error at line 1, column 7.  Encountered: <EOF> after : ".x"'),
        ("\u4e2d = 1", 'TokenMgrError: Lexical error at line 1, column 1.  Encountered: "\\u4e2d" (20013), after : ""'),
        ("a > 0.0", "java.lang.RuntimeException: 0.0 is less than 4.9E-324"),
        ("a > 1e999", "java.lang.RuntimeException: 1e999 is greater than 1.7976931348623157E308"),
        ("a = NULL", "java.lang.RuntimeException: 'NULL' cannot be compared."),
        ("TRUE = 5", "java.lang.RuntimeException: 'TRUE' cannot be compared with '5'"),
        ("a BETWEEN 'b' AND 'a'", "left value(b) must less than or equal to right value(a)"),
        ("a BETWEEN 2.5 AND 1", "left value(2.5) must less than or equal to right value(1)"),
        ("a BETWEEN NULL AND 1", "Illegal values of between, values can not be null!"),
        ("a BETWEEN 1 AND 'x'", 'RuntimeException: java.lang.NumberFormatException: For input string: "x"'),
        ("5 IN ('5')", "Expected a property for In expression, got: 5"),
        ("a IN ('one','two','three','four','five') > 1", "Value 'a IN ( "),
        ("(" * 80 + "a" + ")" * 80, "java.lang.StackOverflowError"),
        ("(" * 50 + "+" + "(" * 50 + "a = 1", "java.lang.StackOverflowError"),
        ("+" * 80 + "a = 1", "java.lang.StackOverflowError"),
        ("a" + " IS NULL" * 80, "java.lang.StackOverflowError"),
    ],
)
def test_other_refusals(expression: str, message: str) -> None:
    with pytest.raises(MQFilterException) as refused:
        compile_filter("SQL92", expression)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("expression", "properties", "value"),
    [
        ("a > 5", {"a": "3000000000"}, no_number("3000000000")),
        ("a > 3000000000", {"a": "3000000001"}, True),
        ("a = -2147483648", {"a": "-2147483648"}, True),
        ("a < 1.5", {"a": " 0x1.8p-1 "}, True),
        ("a < 1.5", {"a": "NaN"}, False),
        ("a > b", {"a": "10", "b": "9f"}, True),
        ("a >= b", {"a": "-0.0", "b": "0.0"}, False),
        ("TRUE = a", {"a": "true"}, {"error": CLASS_CAST.removeprefix("java.lang.")}),
        ("a = TRUE", {"a": "TrUe"}, True),
        ("a = '\U0001f600'", {"a": "\U0001f600"}, True),
        ("a = 1 -- the rest of the line\nAND b = 2", {"a": "1", "b": "3"}, False),
        ("a NOT STARTSWITH 'x'", {"a": "yx"}, True),
        ("a NOT CONTAINS ''", {"a": "yx"}, False),
        (" OR ".join(f"a = {i}" for i in range(2000)), {"a": "1999"}, True),
    ],
)
def test_values_that_few_write(expression: str, properties: dict[str, str], value: Any) -> None:
    assert judged(expression, properties) == value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.05, "0.05"),
        (float("inf"), "Infinity"),
    ],
)
def test_a_double_is_written_as_java_writes_it(number: float, text: str) -> None:
    assert java_text(number) == text
