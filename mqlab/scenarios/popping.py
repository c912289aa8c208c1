"""The scenarios of Pop: applications that pop, acknowledge late or never, in order, and beside consumers that pull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.numbered import TOPIC, reader, spawn_sending
from mqlab.scenarios.popper import Popper
from mqlab.scenarios.pushing import new_reader
from mqlab.scenarios.registry import ANY_FAULT, scenario
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.lab import Lab


async def _shop(lab: Lab, *, queues: int, messages: int, every_ms: int, **broker: Any) -> None:
    lab.name_server()
    lab.broker(**broker)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)


def _popped_by_hand(
    name: str, summary: str, *, goals: tuple[str, ...], order: bool = False, **broker: Any
) -> None:
    """Register a scenario in which processes of one group pop with their own hands; `broker` are settings of it."""

    async def play(
        lab: Lab,
        *,
        poppers: int = 2,
        queues: int = 2,
        messages: int = 40,
        every_ms: int = 500,
        flush: Flush = "SYNC_FLUSH",
    ) -> None:
        await _shop(lab, queues=queues, messages=messages, every_ms=every_ms, flush_disk_type=flush, **broker)
        for _ in range(poppers):
            await Popper(lab, order=order).start()

    play.__doc__ = summary
    scenario(name, seconds=40, faults=ANY_FAULT, goals=goals)(play)


_popped_by_hand(
    "pop-plain",
    "A group pops; some messages are acknowledged late, some never, some get another invisible time.",
    goals=("message-is-revived", "ack-comes-too-late", "invisible-time-changes"),
)
_popped_by_hand(
    "pop-buffer-merge",
    "The same with a broker that keeps check points in memory until their acknowledgements have come.",
    goals=("check-point-is-settled-in-memory", "check-point-is-stored-after-its-ack"),
    enable_pop_buffer_merge=True,
)
_popped_by_hand(
    "pop-key-value",
    "The same with a broker that keeps a record of each message that is out, in a store of keys and values.",
    goals=("pop-record-is-revived", "pop-records-are-recovered"),
    pop_consumer_kv_service_enable=True,
)
_popped_by_hand(
    "pop-ordered",
    "A group pops in order: nothing more of a queue while a message of it is neither done nor visible again.",
    goals=("ordered-pop-is-turned-away", "ordered-messages-are-visible-again"),
    order=True,
)


@scenario("pop-mixed-with-push", seconds=40, faults=ANY_FAULT, goals=("revived-message-is-popped",))
async def pop_mixed_with_push(
    lab: Lab,
    *,
    queues: int = 2,
    messages: int = 40,
    every_ms: int = 500,
    flush: Flush = "SYNC_FLUSH",
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
