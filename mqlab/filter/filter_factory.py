"""From the name of a language to its compiler."""

from __future__ import annotations

from functools import lru_cache

from mqlab.filter.expression import BooleanExpression
from mqlab.filter.selector_parser import SelectorParser

SQL92 = "SQL92"


def is_filter_type(expression_type: str) -> bool:
    """Is there a compiler for this language? (org.apache.rocketmq.filter.FilterFactory.get)"""
    return expression_type == SQL92


@lru_cache(maxsize=100)
def compile_filter(expression_type: str, expression: str) -> BooleanExpression:
    """The condition that a text describes; MQFilterException, with the place, for one that cannot be read.

    Java: org.apache.rocketmq.filter.SqlFilter.compile, which keeps the last hundred as well. LookupError for a language
    that has no compiler (see `is_filter_type`).
    """
    if not is_filter_type(expression_type):
        raise LookupError(f"no filter reads {expression_type}")
    return SelectorParser(expression).parse()
