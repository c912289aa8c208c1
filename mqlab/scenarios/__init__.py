"""Named, parametrised worlds: one registry for the command line, tests, benchmarks, labs and data sets."""

from . import broker_down, ground, pushing, retrying, sending, shop_day, store
from .registry import Parameter, Scenario, add, get, names, scenario
from .source import add_from_source

__all__ = [
    "Parameter",
    "Scenario",
    "add",
    "add_from_source",
    "broker_down",
    "get",
    "ground",
    "names",
    "pushing",
    "retrying",
    "scenario",
    "sending",
    "shop_day",
    "store",
]
