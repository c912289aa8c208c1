"""Filters by SQL92: conditions over the properties of a message, as RocketMQ's `filter` module reads and judges them.

    compile_filter("SQL92", "amount > 100 AND city IN ('Berlin', 'Oslo')").evaluate({"amount": "250", "city": "Oslo"})

answers True, False or None: a property that is missing makes a condition unknown, and what is unknown is not wanted.
`BloomFilter` and `BitsArray` say in a few bytes which of many filters a message has passed.
"""

from mqlab.filter.bits_array import BitsArray
from mqlab.filter.bloom_filter import BloomFilter, BloomFilterData
from mqlab.filter.errors import FilterEvaluationError, MQFilterException
from mqlab.filter.expression import Expression
from mqlab.filter.filter_factory import compile_filter, is_filter_type

__all__ = [
    "BitsArray",
    "BloomFilter",
    "BloomFilterData",
    "Expression",
    "FilterEvaluationError",
    "MQFilterException",
    "compile_filter",
    "is_filter_type",
]
