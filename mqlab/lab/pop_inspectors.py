"""Inspectors of Pop: tables of what waits, what is handed out, and what is being revived right now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.protocol.pop_check_point import REVIVE_GROUP, revive_topic
from mqlab.views import Table

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess


def held_pops_table(brokers: Sequence[BrokerProcess]) -> Table:
    """The pops (and questions whether there is something to pop) that the brokers keep, and how long they have waited.

    Queue -1 is any queue. A broker from which nobody pops has none.
    """
    rows = []
    for broker in brokers:
        pop = broker.running().made_pop
        services = (
            []
            if pop is None
            else [
                ("pop", pop.pop_message_processor.pop_long_polling_service),
                ("notification", pop.notification_processor.pop_long_polling_service),
            ]
        )
        for kind, service in services:
            for waiting in service.held():
                header = waiting.header
                waited_ms = (broker.node.now_us() - waiting.parked_us) / 1_000
                rows.append(
                    (
                        broker.name,
                        kind,
                        header.consumer_group,
                        header.topic,
                        header.queue_id,
                        round(waited_ms, 1),
                        waiting.expired_ms - broker.node.now_ms(),
                        waiting.channel.remote_address,
                    )
                )
    header_row = ("broker", "asks", "group", "topic", "queue", "waits ms", "ms left", "client")
    return Table("held pops", header_row, rows)


def pop_check_points_table(brokers: Sequence[BrokerProcess]) -> Table:
    """The check points that the brokers have in memory, in the order of their pops: what is handed out and not settled.

    `acked` is a mask of bits, one for each message; "offset only" says that the store has the check point, and memory
    only where its group goes on.
    """
    rows = []
    for broker in brokers:
        pop = broker.running().made_pop
        for wrapper in [] if pop is None else pop.pop_buffer_merge_service.buffer.values():
            ck = wrapper.ck
            rows.append(
                (
                    broker.name,
                    ck.group or "",
                    ck.topic or "",
                    ck.queue_id,
                    ",".join(map(str, ck.offsets())),
                    f"{wrapper.bits:0{max(1, ck.num)}b}"[::-1],
                    wrapper.next_begin_offset,
                    "offset only" if wrapper.just_offset else "buffer",
                    wrapper.ck_stored,
                    ck.revive_time - broker.node.now_ms(),
                )
            )
    header_row = (
        "broker", "group", "topic", "queue", "offsets", "acked", "goes on at", "held in", "stored", "ms to revival",
    )  # fmt: skip
    return Table("check points in memory", header_row, rows)


def revive_queues_table(brokers: Sequence[BrokerProcess]) -> Table:
    """How far the reviver of each revive queue has come, and what lies in front of it."""
    rows = []
    for broker in brokers:
        controller = broker.running()
        pop = controller.made_pop
        if pop is None:
            continue
        topic = revive_topic(controller.broker_config.broker_cluster_name)
        for queue_id in range(controller.broker_config.revive_queue_num):
            committed = controller.consumer_offset_manager.query_offset(REVIVE_GROUP, topic, queue_id)
            end = controller.message_store.get_max_offset_in_queue(topic, queue_id)
            rows.append((broker.name, queue_id, committed, end))
    return Table("revive queues", ("broker", "revive queue", "revived up to", "end of the queue"), rows)
