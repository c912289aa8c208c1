"""Named, parametrised worlds: one registry for the command line, tests, benchmarks, labs and data sets."""

from mqlab.scenarios import (
    broker_down,
    delivered_again,
    demo,
    flow_control,
    ground,
    hardships,
    lite_pull,
    membership,
    merge_buffer,
    popping,
    pulling,
    pushing,
    retrying,
    rivals,
    sending,
    shop_day,
    store,
)
from mqlab.scenarios.captions import Storyboard
from mqlab.scenarios.registry import Caption, Parameter, Scenario, add, get, names, scenario
from mqlab.scenarios.source import add_from_source

__all__ = [
    "Caption",
    "Parameter",
    "Scenario",
    "Storyboard",
    "add",
    "add_from_source",
    "broker_down",
    "delivered_again",
    "demo",
    "flow_control",
    "get",
    "ground",
    "hardships",
    "lite_pull",
    "membership",
    "merge_buffer",
    "names",
    "popping",
    "pulling",
    "pushing",
    "retrying",
    "rivals",
    "scenario",
    "sending",
    "shop_day",
    "store",
]
