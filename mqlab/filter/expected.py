"""What a parser looks at before it decides, and what an error says it had expected: the machinery that JavaCC adds.

RocketMQ gives the whole text of a parser's error to its clients, with the list of what could have stood there. It is
made of what was asked for at this word in vain, and of what was looked for some words ahead, and is looked for again
when an error is told; JavaCC has its own way of putting these together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mqlab.filter.errors import MQFilterException
from mqlab.filter.tokens import KIND_IMAGES, Kind, Token, TokenReader, escaped

PAIRS = (
    (Kind.IS, Kind.NULL),
    (Kind.NOT, Kind.CONTAINS),
    (Kind.NOT, Kind.STARTSWITH),
    (Kind.NOT, Kind.ENDSWITH),
    (Kind.NOT, Kind.BETWEEN),
    (Kind.NOT, Kind.IN),
)
"""The pairs of words that are looked for with LOOKAHEAD(2), by their numbers."""

PLUS_LOOK = len(PAIRS)
WITHOUT_END = (1 << 31) - 1
LONGEST_LIST = 100
MAX_DEPTH = 64
"""How deep parentheses, signs and comparisons may stand in each other. In Java the stack of a thread is the limit,
some thousands; more is answered as Java answers then."""

LITERALS = (
    Kind.STRING_LITERAL,
    Kind.DECIMAL_LITERAL,
    Kind.FLOATING_POINT_LITERAL,
    Kind.TRUE,
    Kind.FALSE,
    Kind.NULL,
    Kind.ID,
)
EQUALITIES = ((Kind.EQUAL,), (Kind.NOT_EQUAL,))
ORDERS = (Kind.GREATER, Kind.GREATER_EQUAL, Kind.LESS, Kind.LESS_EQUAL)
TEXT_FORMS = (
    (Kind.CONTAINS,),
    (Kind.NOT, Kind.CONTAINS),
    (Kind.STARTSWITH,),
    (Kind.NOT, Kind.STARTSWITH),
    (Kind.ENDSWITH,),
    (Kind.NOT, Kind.ENDSWITH),
)


class _Seen(Exception):
    """As far as was to be looked, all was there (JavaCC's LookaheadSuccess)."""


class _Look:
    """One look ahead that may be repeated for an error (JJCalls): valid until the parser has come to word `until`."""

    __slots__ = ("first", "limit", "until")

    def __init__(self) -> None:
        self.until = 0
        self.first = -1
        self.limit = 0


class LookAhead:
    """The words of an expression for a parser: takes them one by one, looks at those ahead, tells what was expected.

    Java: the part of SelectorParser that JavaCC generates (jj_consume_token, jj_scan_token, generateParseException).
    """

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._reader = TokenReader(expression)
        self._tokens: list[Token] = []
        self._at = -1
        self._expected: set[Kind] = set()
        self._looks: list[list[_Look]] = [[_Look()] for _ in range(PLUS_LOOK + 1)]
        self._scan_at = -1
        self._scan_last = -1
        self._scan_left = 0
        self._scan_depth = 0
        self._repeats = False
        self._entry: list[Kind] = []
        self._entries: list[list[Kind]] = []

    # -- taking words -----------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        """The next word, which is not taken."""
        return self._token(self._at + 1)

    def current(self) -> Token:
        """The word that was taken last."""
        return self._token(max(self._at, 0))

    def take(self, kind: Kind) -> Token:
        """Take the next word, which is to be of this kind; else MQFilterException."""
        found = self.peek()
        if found.kind != kind:
            self._expected.add(kind)
            raise self.failure()
        self._at += 1
        self._expected.clear()
        return found

    def expect(self, kinds: Iterable[Kind]) -> None:
        """The next word could have been of one of these kinds."""
        self._expected.update(kinds)

    def _token(self, place: int) -> Token:
        while place >= len(self._tokens):
            self._tokens.append(self._reader.next_token())
        return self._tokens[place]

    # -- looking ahead ----------------------------------------------------------------------------------------------

    def comes(self, number: int) -> bool:
        """Are the next two words the pair of this number?"""
        return self._look(number, 2, lambda: self._scan_all(PAIRS[number]))

    def plus_comes(self, depth: int) -> bool:
        """Does a plus sign come with a value behind it? Else it is no sign. The parser stands `depth` deep."""
        self._scan_depth = depth
        return self._look(PLUS_LOOK, WITHOUT_END, self._scan_plus)

    def _look(self, number: int, limit: int, scan: Callable[[], bool]) -> bool:
        self._scan_at = self._scan_last = self._at
        self._scan_left = limit
        try:
            return scan()
        except _Seen:
            return True
        finally:
            looks = self._looks[number]
            taken = self._at + 1
            look = next((look for look in looks if look.until <= taken), None)
            if look is None:
                look = _Look()
                looks.append(look)
            look.until = taken + limit - self._scan_left
            look.first = self._at
            look.limit = limit

    def _scan(self, kind: Kind) -> bool:
        """Is the next word ahead of this kind? Raises _Seen when that was the last to be looked at."""
        if self._scan_at == self._scan_last:
            self._scan_left -= 1
            self._scan_last += 1
        self._scan_at += 1
        if self._repeats and self._scan_at >= self._at:
            self._add_error_token(kind, self._scan_at - self._at)
        if self._token(self._scan_at).kind != kind:
            return False
        if self._scan_left == 0 and self._scan_at == self._scan_last:
            raise _Seen
        return True

    def _scan_all(self, kinds: Iterable[Kind]) -> bool:
        return all(self._scan(kind) for kind in kinds)

    def _scan_plus(self) -> bool:
        return self._scan(Kind.PLUS) and self._scan_unary()

    def _scan_unary(self) -> bool:
        start = self._scan_at
        self._scan_depth += 1
        try:
            if self._scan_depth > MAX_DEPTH:
                token = self._token(start)
                raise MQFilterException("java.lang.StackOverflowError", self._expression, token.line, token.column)
            for sign in (Kind.PLUS, Kind.MINUS, Kind.NOT):
                if self._scan(sign) and self._scan_unary():
                    return True
                self._scan_at = start
            for literal in LITERALS:
                if self._scan(literal):
                    return True
                self._scan_at = start
            return self._scan(Kind.OPEN) and self._scan_or() and self._scan(Kind.CLOSE)
        finally:
            self._scan_depth -= 1

    def _scan_or(self) -> bool:
        return self._scan_and() and self._scan_many(lambda: self._scan(Kind.OR) and self._scan_and())

    def _scan_and(self) -> bool:
        return self._scan_equality() and self._scan_many(lambda: self._scan(Kind.AND) and self._scan_equality())

    def _scan_equality(self) -> bool:
        return self._scan_comparison() and self._scan_many(self._scan_equated)

    def _scan_equated(self) -> bool:
        start = self._scan_at
        for sign in (Kind.EQUAL, Kind.NOT_EQUAL):
            if self._scan(sign) and self._scan_comparison():
                return True
            self._scan_at = start
        if self._scan_all((Kind.IS, Kind.NULL)):
            return True
        self._scan_at = start
        return self._scan_all((Kind.IS, Kind.NOT, Kind.NULL))

    def _scan_comparison(self) -> bool:
        return self._scan_unary() and self._scan_many(self._scan_compared)

    def _scan_compared(self) -> bool:
        start = self._scan_at
        for order in ORDERS:
            if self._scan(order) and self._scan_unary():
                return True
            self._scan_at = start
        for form in TEXT_FORMS:
            if self._scan_all((*form, Kind.STRING_LITERAL)):
                return True
            self._scan_at = start
        for form in ((Kind.BETWEEN,), (Kind.NOT, Kind.BETWEEN)):
            if self._scan_all(form) and self._scan_unary() and self._scan(Kind.AND) and self._scan_unary():
                return True
            self._scan_at = start
        if self._scan_list((Kind.IN,)):
            return True
        self._scan_at = start
        return self._scan_list((Kind.NOT, Kind.IN))

    def _scan_list(self, form: tuple[Kind, ...]) -> bool:
        return (
            self._scan_all((*form, Kind.OPEN, Kind.STRING_LITERAL))
            and self._scan_many(lambda: self._scan_all((Kind.COMMA, Kind.STRING_LITERAL)))
            and self._scan(Kind.CLOSE)
        )

    def _scan_many(self, part: Callable[[], bool]) -> bool:
        """As many of these as there are; always true."""
        while True:
            start = self._scan_at
            if not part():
                self._scan_at = start
                return True

    # -- telling what was expected ----------------------------------------------------------------------------------

    def failure(self) -> MQFilterException:
        """The ParseException for the next word."""
        self._entries = [[kind] for kind in sorted(self._expected)]
        self._entry = []
        self._repeat_looks()
        self._add_error_token(Kind.EOF, 0)
        expected = "".join(
            "".join(KIND_IMAGES[kind] + " " for kind in entry) + ("..." if entry[-1] != Kind.EOF else "") + "\n    "
            for entry in self._entries
        )
        next_token = self.peek()
        few = "Was expecting:" if len(self._entries) == 1 else "Was expecting one of:"
        return MQFilterException(
            f'org.apache.rocketmq.filter.parser.ParseException: Encountered "{self._met()}" at line '
            f"{next_token.line}, column {next_token.column}.\n{few}\n    {expected}",
            self._expression,
            next_token.line,
            next_token.column,
        )

    def _met(self) -> str:
        """The words that stand there, as many as the longest entry of the list has."""
        met = ""
        for i in range(max(map(len, self._entries), default=0)):
            token = self._token(self._at + 1 + i)
            met += " " if i else ""
            if token.kind == Kind.EOF:
                return met + KIND_IMAGES[Kind.EOF]
            met += f' {KIND_IMAGES[token.kind]} "{escaped(token.image)} "'
        return met

    def _repeat_looks(self) -> None:
        taken = self._at + 1
        self._repeats = True
        for number, looks in enumerate(self._looks):
            try:
                for look in looks:
                    if look.until > taken:
                        self._scan_left = look.limit
                        self._scan_at = self._scan_last = look.first
                        if number == PLUS_LOOK:
                            self._scan_plus()
                        else:
                            self._scan_all(PAIRS[number])
            except _Seen:
                continue
        self._repeats = False

    def _add_error_token(self, kind: Kind, place: int) -> None:
        """A word of this kind was looked for so many words ahead (jj_add_error_token).

        A list is dropped when it equals one that is there, and, by an error of JavaCC's, when the last one there has
        another length.
        """
        if place >= LONGEST_LIST:
            return
        if place == len(self._entry) + 1:
            self._entry.append(kind)
        elif self._entry:
            known = self._entry in self._entries
            if not known and not (self._entries and len(self._entries[-1]) != len(self._entry)):
                self._entries.append(list(self._entry))
            if place:
                self._entry = [*self._entry[: place - 1], kind]
