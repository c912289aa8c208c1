"""The scenarios of Pop: applications that pop, acknowledge late or never, in order, and beside consumers that pull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.popper import Popper
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.registry import ANY_FAULT, scenario

if TYPE_CHECKING:
    from mqlab.lab import Lab


async def _shop(lab: Lab, *, queues: int, messages: int, every_ms: int, **broker: Any) -> None:
    lab.name_server()
    lab.broker(**broker)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)


@scenario("pop-plain", seconds=40, faults=ANY_FAULT)
async def pop_plain(
    lab: Lab,
    *,
    poppers: int = 2,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: str = "SYNC_FLUSH",
) -> None:
    """A group pops; some messages are acknowledged late, some never, some get another invisible time."""
    await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, flush_disk_type=flush)
    for _ in range(poppers):
        await Popper(lab).start()


@scenario("pop-buffer-merge", seconds=40, faults=ANY_FAULT)
async def pop_buffer_merge(
    lab: Lab,
    *,
    poppers: int = 2,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: str = "SYNC_FLUSH",
) -> None:
    """The same with a broker that keeps check points in memory until their acknowledgements have come."""
    settings = {"flush_disk_type": flush, "enable_pop_buffer_merge": True}
    await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, **settings)
    for _ in range(poppers):
        await Popper(lab).start()


@scenario("pop-key-value", seconds=40, faults=ANY_FAULT)
async def pop_key_value(
    lab: Lab,
    *,
    poppers: int = 2,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: str = "SYNC_FLUSH",
) -> None:
    """The same with a broker that keeps a record of each message that is out, in a store of keys and values."""
    settings = {"flush_disk_type": flush, "pop_consumer_kv_service_enable": True}
    await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, **settings)
    for _ in range(poppers):
        await Popper(lab).start()


@scenario("pop-ordered", seconds=40, faults=ANY_FAULT)
async def pop_ordered(
    lab: Lab,
    *,
    poppers: int = 2,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: str = "SYNC_FLUSH",
) -> None:
    """A group pops in order: nothing more of a queue while a message of it is neither done nor visible again."""
    await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, flush_disk_type=flush)
    for _ in range(poppers):
        await Popper(lab, order=True).start()


@scenario("pop-mixed-with-push", seconds=40, faults=ANY_FAULT)
async def pop_mixed_with_push(
    lab: Lab,
    *,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: str = "SYNC_FLUSH",
) -> None:
    """One topic: an application pops it, a push consumer pops it for its listener, another one pulls it."""
    await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, flush_disk_type=flush)
    await Popper(lab).start()
    lab.set_message_request_mode(TOPIC, "popped-to", "POP")
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    popping = lab.consumer("popped-to", client_rebalance=False, consume_from_where=first)
    popping.subscribe(TOPIC, "*")
    popping.register_message_listener(reader(popping))
    await popping.start()
    pulling = new_reader(lab)
    pulling.register_message_listener(reader(pulling))
    await pulling.start()


