"""The words of an expression, read one by one, with their lines and columns.

A word is read only when the parser comes to it, so that what stands behind the end of a condition is never looked at:
`a > 5)` is `a > 5`. Columns are those of JavaCC's reader.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from mqlab.filter.errors import TAB_SIZE, MQFilterException


class Kind(IntEnum):
    """The kinds of words, in the order in which an error lists what it expected (SelectorParserConstants)."""

    EOF = 0
    NOT = 8
    AND = 9
    OR = 10
    BETWEEN = 11
    IN = 12
    TRUE = 13
    FALSE = 14
    NULL = 15
    IS = 16
    CONTAINS = 17
    STARTSWITH = 18
    ENDSWITH = 19
    DECIMAL_LITERAL = 20
    FLOATING_POINT_LITERAL = 21
    STRING_LITERAL = 23
    ID = 24
    EQUAL = 25
    NOT_EQUAL = 26
    GREATER = 27
    GREATER_EQUAL = 28
    LESS = 29
    LESS_EQUAL = 30
    OPEN = 31
    COMMA = 32
    CLOSE = 33
    PLUS = 34
    MINUS = 35


_SIGNS = {
    "=": Kind.EQUAL,
    "<>": Kind.NOT_EQUAL,
    ">": Kind.GREATER,
    ">=": Kind.GREATER_EQUAL,
    "<": Kind.LESS,
    "<=": Kind.LESS_EQUAL,
    "(": Kind.OPEN,
    ",": Kind.COMMA,
    ")": Kind.CLOSE,
    "+": Kind.PLUS,
    "-": Kind.MINUS,
}
_WORDS = {kind.name: kind for kind in Kind if Kind.NOT <= kind <= Kind.ENDSWITH}
KIND_IMAGES = {
    **{kind: f"<{kind.name}>" for kind in Kind},
    **{kind: f'"{word}"' for word, kind in (_SIGNS | _WORDS).items()},
}
"""How an error writes each kind (SelectorParserConstants.TOKEN_IMAGE)."""


class Token(NamedTuple):
    """One word: its kind, its text and where it begins."""

    kind: Kind
    image: str
    line: int
    column: int


_SKIPPED = re.compile(r"[ \t\n\r\f]|--[^\n\r]*(?:\r\n|\n|\r)|/\*[^*]*\*(?:\*|[^*/][^*]*\*)*/")
_TOKEN = re.compile(
    r"(?P<FLOATING_POINT_LITERAL>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<DECIMAL_LITERAL>0|[1-9][0-9]*[lL]?)"
    r"|(?P<STRING_LITERAL>'(?:''|[^'])*')"
    r"|(?P<ID>[a-zA-Z_$][a-zA-Z0-9_$]*)"
    r"|(?P<sign><>|>=|<=|[=<>(,)+-])"
)


class TokenReader:
    """Gives the words of an expression in their order (SelectorParserTokenManager); after the last, EOF for ever."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        # Java counts UTF-16 units.
        units = expression.encode("utf-16-be", "surrogatepass")
        self._text = "".join(chr(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2))
        self._places = _places(self._text)
        self._at = 0

    def next_token(self) -> Token:
        """The next word; MQFilterException (a TokenMgrError) at what is none."""
        text = self._text
        while skipped := _SKIPPED.match(text, self._at):
            self._at = skipped.end()
        start = self._at
        if start == len(text):
            return Token(Kind.EOF, "", *(self._places[-1] if text else (0, 0)))
        found = _TOKEN.match(text, start)
        if found is None:
            raise self._lexical_error(start)
        self._at = found.end()
        image = found[0]
        group = found.lastgroup or ""
        if group == "sign":
            kind = _SIGNS[image]
        elif group == "ID":
            kind = _WORDS.get(image.upper(), Kind.ID)
        else:
            kind = Kind[group]
        return Token(kind, image, *self._places[start])

    def _lexical_error(self, start: int) -> MQFilterException:
        """What JavaCC says of the text from `start` on: it names the character at which nothing could go on."""
        text = self._text
        last = len(text) - 1
        if text[start] == "'" or text.startswith("/*", start):
            failed = last
        else:
            failed = min(start + 1, last) if text[start] in "./" else start
        line, column = self._places[failed]
        if failed == last:
            line, column = (line + 1, 0) if text[failed] in "\n\r" else (line, column + 1)
            met, after = "<EOF> ", text[start:]
        else:
            met, after = f'"{escaped(text[failed])}" ({ord(text[failed])}), ', text[start:failed]
        after = after if failed > start else ""
        return MQFilterException(
            "org.apache.rocketmq.filter.parser.TokenMgrError: Lexical error at line "
            f'{line}, column {column}.  Encountered: {met}after : "{escaped(after)}"',
            self._expression,
            line,
            column,
        )


def decoded_string(image: str) -> str:
    """The text between the quotes of a STRING_LITERAL, where two quotes are one."""
    units = image[1:-1].replace("''", "'")
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def escaped(text: str) -> str:
    """A text as JavaCC's errors write it: letters of ASCII, and the others by their number."""
    return "".join(
        _ESCAPES.get(c) or (c if " " <= c <= "~" else "" if c == "\0" else f"\\u{ord(c):04x}") for c in text
    )


def _places(text: str) -> list[tuple[int, int]]:
    """The line and the column of each character (SimpleCharStream)."""
    places = []
    line, column = 1, 0
    before = ""
    for c in text:
        column += 1
        if before == "\n" or (before == "\r" and c != "\n"):
            line, column = line + 1, 1
        if c == "\t":
            column -= 1
            column += TAB_SIZE - column % TAB_SIZE
        places.append((line, column))
        before = c
    return places
