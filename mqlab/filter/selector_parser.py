"""The parser of SQL92 conditions: one method for each rule of RocketMQ's grammar, and JavaCC's words for what is wrong.

Conditions bind, from loose to tight: OR; AND; `=`, `<>`, IS NULL; orders, BETWEEN, IN and parts of texts; `+`, `-`, NOT
before one value; a value or parentheses. So `NOT a > 5` is `(NOT a) > 5`, which cannot be compared.
"""

from __future__ import annotations

from mqlab.filter.comparison import (
    RUNTIME,
    PartOfText,
    between,
    equal,
    in_list,
    is_null,
    not_between,
    not_equal,
    ordered,
)
from mqlab.filter.errors import FilterMakingError, MQFilterException
from mqlab.filter.expected import MAX_DEPTH, LookAhead
from mqlab.filter.expression import (
    BooleanCast,
    BooleanConstantExpression,
    BooleanExpression,
    ConstantExpression,
    Expression,
    Negate,
    Not,
    PropertyExpression,
    joined,
)
from mqlab.filter.java_values import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    NUMBER_FORMAT,
    Long,
    NumberFormatError,
    parse_whole,
)
from mqlab.filter.tokens import Kind, Token, decoded_string

PARSE_EXCEPTION = "org.apache.rocketmq.filter.parser.ParseException"

ORDER_SIGNS = {Kind.GREATER: ">", Kind.GREATER_EQUAL: ">=", Kind.LESS: "<", Kind.LESS_EQUAL: "<="}
TEXT_WORDS = (Kind.CONTAINS, Kind.STARTSWITH, Kind.ENDSWITH)
WORDS_AFTER_NOT = (*TEXT_WORDS, Kind.BETWEEN, Kind.IN)
COMPARES = {*ORDER_SIGNS, *WORDS_AFTER_NOT, Kind.NOT}
LITERALS = {
    Kind.STRING_LITERAL,
    Kind.DECIMAL_LITERAL,
    Kind.FLOATING_POINT_LITERAL,
    Kind.TRUE,
    Kind.FALSE,
    Kind.NULL,
}
PRIMARIES = LITERALS | {Kind.ID, Kind.OPEN}
BOOLEANS = {Kind.TRUE: True, Kind.FALSE: False, Kind.NULL: None}


class SelectorParser:
    """Reads one condition (org.apache.rocketmq.filter.parser.SelectorParser).

    What stands behind a whole condition is not looked at, as in RocketMQ: `a > 5 ) AND` is `a > 5`. Differs from
    RocketMQ: parts may stand 64 deep in each other; there the stack of a thread is the limit, at some thousands.
    """

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._ahead = LookAhead(expression)
        self._depth = 0

    def parse(self) -> BooleanExpression:
        """The condition; MQFilterException where it is none."""
        return self._as_boolean(self._or())

    # -- the grammar ------------------------------------------------------------------------------------------------

    def _or(self) -> Expression:
        left = self._and()
        while self._goes_on({Kind.OR}):
            self._take(Kind.OR)
            right = self._and()
            left = joined(self._as_boolean(left), self._as_boolean(right), decides=True)
        return left

    def _and(self) -> Expression:
        left = self._equality()
        while self._goes_on({Kind.AND}):
            self._take(Kind.AND)
            right = self._equality()
            left = joined(self._as_boolean(left), self._as_boolean(right), decides=False)
        return left

    def _equality(self) -> Expression:
        left = self._comparison()
        while self._goes_on({Kind.EQUAL, Kind.NOT_EQUAL, Kind.IS}):
            sign = self._ahead.peek()
            try:
                left = self._equated(left, sign.kind)
            except FilterMakingError as error:
                raise self._refusal(error.message, sign) from None
            self._check_depth(left.depth, sign)
        return left

    def _equated(self, left: Expression, sign: Kind) -> Expression:
        if sign != Kind.IS:
            self._take(sign)
            right = self._comparison()
            return equal(left, right) if sign == Kind.EQUAL else not_equal(left, right)
        self._ahead.expect({Kind.EQUAL, Kind.NOT_EQUAL})
        negated = not self._ahead.comes(0)
        self._take(Kind.IS)
        if negated:
            self._take(Kind.NOT)
        self._take(Kind.NULL)
        return Not(is_null(left)) if negated else is_null(left)

    def _comparison(self) -> Expression:
        left = self._unary()
        while self._goes_on(COMPARES):
            sign = self._ahead.peek()
            try:
                left = self._compared(left, sign.kind)
            except FilterMakingError as error:
                raise self._refusal(error.message, sign) from None
            self._check_depth(left.depth, sign)
        return left

    def _compared(self, left: Expression, sign: Kind) -> Expression:
        if sign in ORDER_SIGNS:
            self._take(sign)
            return ordered(left, ORDER_SIGNS[sign], self._unary())
        # Java asks in this order, which an error text shows.
        if sign != Kind.CONTAINS:
            self._ahead.expect(ORDER_SIGNS)
        for place, word in enumerate(WORDS_AFTER_NOT, 1):
            if sign == word:
                return self._with_word(left, word, negated=False)
            self._ahead.expect({word})
            if self._ahead.comes(place):
                self._take(Kind.NOT)
                return self._with_word(left, word, negated=True)
        raise self._ahead.failure()

    def _with_word(self, left: Expression, word: Kind, *, negated: bool) -> Expression:
        self._take(word)
        if word in TEXT_WORDS:
            return PartOfText(left, word.name, self._string(), negated)
        if word == Kind.BETWEEN:
            low = self._unary()
            self._take(Kind.AND)
            high = self._unary()
            return not_between(left, low, high) if negated else between(left, low, high)
        self._take(Kind.OPEN)
        elements = [self._string()]
        while self._goes_on({Kind.COMMA}):
            self._take(Kind.COMMA)
            elements.append(self._string())
        self._take(Kind.CLOSE)
        return in_list(left, elements, negated)

    def _unary(self) -> Expression:
        plus = self._ahead.plus_comes(self._depth)
        first = self._ahead.peek()
        self._depth += 1
        self._check_depth(self._depth, first)
        if plus:
            self._take(Kind.PLUS)
            found = self._unary()
        elif first.kind == Kind.MINUS:
            self._take(Kind.MINUS)
            found = Negate(self._unary())
        elif first.kind == Kind.NOT:
            self._take(Kind.NOT)
            found = Not(self._as_boolean(self._unary()))
        elif first.kind in PRIMARIES:
            found = self._primary(first.kind)
        else:
            self._ahead.expect({*PRIMARIES, Kind.NOT, Kind.MINUS})
            raise self._ahead.failure()
        self._depth -= 1
        return found

    def _primary(self, kind: Kind) -> Expression:
        if kind == Kind.ID:
            return PropertyExpression(self._take(Kind.ID).image)
        if kind == Kind.OPEN:
            self._take(Kind.OPEN)
            inner = self._or()
            self._take(Kind.CLOSE)
            return inner
        if kind == Kind.STRING_LITERAL:
            return ConstantExpression(self._string())
        word = self._take(kind)
        if kind in BOOLEANS:
            return BooleanConstantExpression(BOOLEANS[kind])
        return ConstantExpression(self._whole(word) if kind == Kind.DECIMAL_LITERAL else self._floating(word))

    def _string(self) -> str:
        return decoded_string(self._take(Kind.STRING_LITERAL).image)

    def _whole(self, word: Token) -> int:
        try:
            number = parse_whole(word.image.rstrip("lL"), LONG_MIN, LONG_MAX)
        except NumberFormatError as error:
            raise self._refusal(f"{NUMBER_FORMAT}: {error}", word) from None
        return number if INT_MIN <= number <= INT_MAX else Long(number)

    def _floating(self, word: Token) -> float:
        """A number with a point; Java refuses what is too large, and 0.0, which is below its smallest one."""
        number = float(word.image)
        if number == float("inf"):
            raise self._refusal(f"{RUNTIME}: {word.image} is greater than 1.7976931348623157E308", word)
        if number == 0:
            raise self._refusal(f"{RUNTIME}: {word.image} is less than 4.9E-324", word)
        return number

    # -- words ------------------------------------------------------------------------------------------------------

    def _goes_on(self, kinds: set[Kind]) -> bool:
        """Is the next word one of these? If not, an error at this place will say that it could have been."""
        if self._ahead.peek().kind in kinds:
            return True
        self._ahead.expect(kinds)
        return False

    def _take(self, kind: Kind) -> Token:
        return self._ahead.take(kind)

    def _as_boolean(self, value: Expression) -> BooleanExpression:
        if isinstance(value, BooleanExpression):
            return value
        if isinstance(value, PropertyExpression):
            return BooleanCast(value)
        raise self._refusal(
            f"{PARSE_EXCEPTION}: Expression will not result in a boolean value: {value}", self._ahead.current()
        )

    def _check_depth(self, depth: int, at: Token) -> None:
        if depth > MAX_DEPTH:
            raise self._refusal("java.lang.StackOverflowError", at)

    def _refusal(self, message: str, at: Token) -> MQFilterException:
        return MQFilterException(message, self._expression, at.line, at.column)
