"""The day of an application of 5.x: it goes the same way twice, and what comes in its way is what the lab says."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.exercises.packing_day import COUNT, PackingDay


async def careful(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """An application that loses nothing."""
    while True:
        try:
            for order in await consumer.receive(16, 15):
                name = order.body.decode()
                if not book.has(name):
                    await producer.send(invoice_for(order))
                    book.note(name)
                await consumer.ack(order)
        except Exception:  # noqa: BLE001  as a student writes it
            await pause(1)


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_careful_application_loses_nothing(seed: int) -> None:
    day = PackingDay(careful, seed).play()
    assert [order.number for order in day.orders if not order.invoices or order.needless] == []
    assert all(map(day.is_settled, day.orders))
    assert not day.ended


def test_a_day_goes_the_same_way_twice() -> None:
    once, again = (PackingDay(careful, 5).play() for _ in range(2))
    assert once.lines == again.lines


@pytest.mark.parametrize("seed", range(1, 13))
def test_whatever_else_happens_the_application_is_killed_and_a_send_is_lost(seed: int) -> None:
    told = [line.text for line in PackingDay(careful, seed).play().lines]
    assert "packer is killed" in told
    assert any(line.startswith("packer: send(") and "raises ClientException" in line for line in told)


def test_all_troubles_come() -> None:
    told = {line.text for seed in range(1, 25) for line in PackingDay(careful, seed).play().lines}
    assert {"packer is killed", "broker-a is killed"} <= told
    assert "from now on all that proxy-1 sends to broker-a is lost" in told
    assert "from now on all that broker-a sends to proxy-1 is lost" in told


def test_an_application_that_returns_is_over() -> None:
    def nothing(*_: Any) -> None:
        return None

    day = PackingDay(nothing, 1).play()
    assert day.ended == "it returned after 0.0 s"
    assert sum(order.invoices for order in day.orders) < COUNT


async def with_a_slip(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """An application that stumbles over its own code, and takes that for a fault of a call."""
    while True:
        try:
            for order in await consumer.receive(16, 15):
                await producer.send(invoice_for(order.boody))
        except Exception:  # noqa: BLE001  as a student writes it
            await pause(1)


def test_a_slip_of_the_application_is_told_once_and_no_error_of_a_call_is() -> None:
    day = PackingDay(with_a_slip, 1).play()
    slip = "packer: an error of its own code: AttributeError: 'MessageView' object has no attribute 'boody'"
    assert [line.text for line in day.lines if "of its own code" in line.text] == [slip]
    assert slip in day.story(day.orders[-1])
    assert not any("of its own code" in line.text for line in PackingDay(careful, 1).play().lines)
