"""Pops by SQL92."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol.headers import PopMessageResponseHeader
from tests.broker.conftest import messages_of


def send(cluster: Any, popper: Any, *values: str) -> None:
    for value in values:
        popper.raw.send("T", value.encode(), properties={"a": value})
    cluster.run(5)


def test_a_pop_takes_what_fulfils_the_condition_and_passes_over_the_rest(cluster: Any, popper: Any) -> None:
    send(cluster, popper, "1", "6", "2", "9")
    response = popper.pop(exp="a > 5", exp_type="SQL92")
    assert [message.body for message in messages_of(response)] == [b"6", b"9"]
    header = response.header_as(PopMessageResponseHeader)
    assert (header.rest_num, header.msg_offset_info) == (0, "0 0 1,3")
    (told,) = cluster.seen("MessagesFilteredByBroker")
    assert (told["messages"], told["by_expression"]) == (2, 2)


def test_a_pop_that_finds_nothing_it_wants_moves_its_group_on(cluster: Any, popper: Any) -> None:
    send(cluster, popper, "1", "2")
    assert popper.pop(exp="a > 5", exp_type="SQL92").code == 210
    send(cluster, popper, "6")
    assert [m.body for m in messages_of(popper.pop(exp="a > 0", exp_type="SQL92"))] == [b"6"]


def test_a_pop_that_waits_sleeps_through_what_it_does_not_want(cluster: Any, popper: Any) -> None:
    answer = popper.begin(exp="a > 5", exp_type="SQL92", poll_time=20_000)
    cluster.run(100)
    send(cluster, popper, "1")
    cluster.run(100)
    assert not answer.done
    send(cluster, popper, "6")
    assert [m.body for m in messages_of(cluster.world.wait_for(answer))] == [b"6"]


@pytest.mark.parametrize(("expression", "kind"), [("a >", "SQL92"), ("a > 5", "XPATH")])
def test_what_cannot_be_read_is_refused(cluster: Any, popper: Any, expression: str, kind: str) -> None:
    response = popper.pop(exp=expression, exp_type=kind)
    assert (response.code, response.remark) == (23, "parse the consumer's subscription failed")
