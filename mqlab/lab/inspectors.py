"""Inspectors: tables of what the parts of a lab hold right now, after the last slice."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.mq_client_manager import MQClientManager
from mqlab.errors import LearnerError
from mqlab.protocol.codes import code_name
from mqlab.protocol.topics import REPLY_TOPIC_POSTFIX, RMQ_SYS_SCHEDULE_TOPIC, is_system_topic
from mqlab.views import FrameUnderWay, LabelledBytes, Table, Wire, label_consume_queue_entry, label_record

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab.processes import BrokerProcess, NameServerProcess
    from mqlab.remoting import RemotingClient
    from mqlab.sim import Node, World

ENTRY = struct.Struct(">qiq")


class QueueView:
    """One queue of one topic on one broker: where it begins and ends, its entries, and the messages they point at."""

    def __init__(self, broker: BrokerProcess, topic: str, queue_id: int) -> None:
        if broker.store.find_consume_queue(topic, queue_id) is None:
            known = sorted(broker.store.consume_queue_store.topics())
            raise LearnerError(
                f"{broker.name} has no queue {queue_id} of topic {topic!r}",
                "it appears when its first message is dispatched, up to 1 ms after send: lab.run_for(ms=2). "
                f"Topics with messages: {', '.join(known) or 'none'}",
            )
        self.broker = broker
        self.topic = topic
        self.queue_id = queue_id

    @property
    def min_offset(self) -> int:
        """The offset of the oldest message that is still there."""
        return self.broker.store.get_min_offset_in_queue(self.topic, self.queue_id)

    @property
    def max_offset(self) -> int:
        """The offset that the next message will get."""
        return self.broker.store.get_max_offset_in_queue(self.topic, self.queue_id)

    def entry_bytes(self, queue_offset: int) -> bytes:
        """The 20 bytes of the consume queue at this offset. LearnerError outside of [min, max)."""
        if not self.min_offset <= queue_offset < self.max_offset:
            raise LearnerError(
                f"queue {self.queue_id} of {self.topic!r} has no message {queue_offset}",
                f"its offsets go from {self.min_offset} to {self.max_offset - 1}",
            )
        queue = self.broker.store.find_consume_queue(self.topic, self.queue_id)
        unit = queue.get(queue_offset) if queue is not None else None
        assert unit is not None
        return ENTRY.pack(unit.pos, unit.size, unit.tags_code)

    def entry(self, queue_offset: int) -> LabelledBytes:
        """The queue's entry at this offset, labelled."""
        delayed = self.topic == RMQ_SYS_SCHEDULE_TOPIC
        return label_consume_queue_entry(self.entry_bytes(queue_offset), queue_offset, delayed=delayed)

    def record_bytes(self, queue_offset: int) -> bytes:
        """The stored message that the entry at this offset points at, as the commit log holds it."""
        data = self.broker.store.select_one_message_by_offset(self._physical_offset(queue_offset))
        if data is None:
            raise LearnerError(f"message {queue_offset} is no longer in the commit log", "its file was deleted")
        return data

    def record(self, queue_offset: int, *, each_property: bool = False) -> LabelledBytes:
        """The stored message at this offset, labelled byte by byte; its properties as one field, or each as its own."""
        data = self.record_bytes(queue_offset)
        return label_record(data, self._physical_offset(queue_offset), each_property=each_property)

    def _physical_offset(self, queue_offset: int) -> int:
        return int.from_bytes(self.entry_bytes(queue_offset)[:8], "big")

    def _table(self) -> Table:
        rows = []
        for offset in range(self.min_offset, self.max_offset):
            raw = self.entry_bytes(offset)
            tags_code = int.from_bytes(raw[12:20], "big", signed=True)
            rows.append((offset, int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:12], "big"), tags_code))
        title = f"queue {self.queue_id} of {self.topic} on {self.broker.name}"
        return Table(title, ("offset", "at in the commit log", "bytes", "tagsCode"), rows, most=20)

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def topics_table(brokers: Sequence[BrokerProcess], *, system: bool) -> Table:
    """The topics that the brokers know, with their queues and how many messages each holds."""
    rows = []
    for broker in brokers:
        controller = broker.running()
        for topic, config in sorted(controller.topic_config_manager.topic_config_table.items()):
            if not system and _is_for_rocketmq_itself(topic, broker):
                continue
            queues = range(max(config.read_queue_nums, config.write_queue_nums))
            store = broker.store
            messages = sum(
                store.get_max_offset_in_queue(topic, q) - max(0, store.get_min_offset_in_queue(topic, q))
                for q in queues
            )
            rows.append((topic, broker.name, config.write_queue_nums, config.read_queue_nums, config.perm, messages))
    return Table("topics", ("topic", "broker", "write queues", "read queues", "perm", "messages"), rows)


def _is_for_rocketmq_itself(topic: str, broker: BrokerProcess) -> bool:
    config = broker.running().broker_config
    own = (config.broker_name, config.broker_cluster_name, f"{config.broker_cluster_name}_{REPLY_TOPIC_POSTFIX}")
    return is_system_topic(topic) or topic in own


def routes_table(name_servers: Sequence[NameServerProcess], topic: str) -> Table:
    """What each name server answers to "where is this topic?"."""
    rows: list[tuple[Any, ...]] = []
    for server in name_servers:
        route = server.running().route_info_manager.pick_up_topic_route_data(topic)
        if route is None:
            rows.append((server.name, "TOPIC_NOT_EXIST", "", "", ""))
            continue
        addresses = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
        for queue in route.queue_datas:
            rows.append(
                (
                    server.name,
                    queue.broker_name,
                    addresses.get(queue.broker_name, {}).get(0, ""),
                    queue.write_queue_nums,
                    queue.perm,
                )
            )
    return Table(f"route of {topic}", ("name server", "broker", "address", "write queues", "perm"), rows)


def frames_under_way(world: World) -> Wire:
    """The frames in flight, in the order in which they will arrive."""
    frames = [
        FrameUnderWay(link.source, link.target, max(0, due_us - world.now_us), link.cut, frame)
        for due_us, link, frame in world.network.under_way()
    ]
    return Wire(world.now_us / 1_000, frames)


def held_pulls_table(brokers: Sequence[BrokerProcess]) -> Table:
    """The pulls that the brokers hold at present, and how long they have been waiting."""
    rows = []
    for broker in brokers:
        for held in broker.running().pull_request_hold_service.held():
            header = held.header
            waited_ms = (broker.node.now_us() - held.suspended_us) / 1_000
            rows.append(
                (
                    broker.name,
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    held.offset,
                    round(waited_ms, 1),
                    held.timeout_ms,
                )
            )
    header_row = ("broker", "group", "topic", "queue", "from offset", "waits ms", "at most ms")
    return Table("held pulls", header_row, rows)


def process_queues_table(consumer: DefaultMQPushConsumer) -> Table:
    """The queues that a consumer owns, and what it holds of each; of what it pops, how many wait for their ack."""
    rows: list[tuple[object, ...]] = [
        (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            process_queue.msg_count,
            process_queue.msg_size,
            process_queue.max_span(),
            process_queue.dropped,
        )
        for queue, process_queue in sorted(consumer.process_queues.items())
    ]
    rows += [
        (
            queue.topic,
            queue.broker_name,
            queue.queue_id if queue.queue_id >= 0 else "any",
            popped.wait_ack_msg_count,
            "",
            "",
            popped.dropped,
        )
        for queue, popped in sorted(consumer.pop_process_queues.items())
    ]
    return Table("process queues", ("topic", "broker", "queue", "messages", "bytes", "span", "dropped"), rows)


def _remoting_clients(node: Node) -> list[RemotingClient]:
    """The remoting of each client instance in the node's process."""
    return [instance.api.remoting_client for instance in MQClientManager.of(node).factory_table.values()]


def response_table_of(node: Node) -> Table:
    """The requests of a client process that wait for their answers, in the order in which they were sent."""
    rows = []
    for remoting in _remoting_clients(node):
        for future in remoting.response_table.values():
            age_ms = (node.now_us() - future.begin_us) / 1_000
            rows.append(
                (
                    future.opaque,
                    code_name(future.request.code),
                    future.channel.remote_address if future.channel is not None else "",
                    "sync" if future.is_sync else "async",
                    round(age_ms, 1),
                    future.timeout_ms,
                    round((future.expires_us() - node.now_us()) / 1_000, 1),
                )
            )
    header = ("opaque", "request", "to", "way", "age ms", "time-out ms", "the scan may remove it in ms")
    return Table(f"response table of {node.name}", header, rows)


def permits_of(node: Node, producers: Sequence[DefaultMQProducer]) -> Table:
    """What limits the calls of a client process: permits in all, taken, and how many wait for one.

    The first two belong to remoting and serve all requests of the process; the others are each producer's own.
    """
    rows: list[tuple[Any, ...]] = []
    for remoting in _remoting_clients(node):
        config = remoting.config
        for name, semaphore, total in (
            ("semaphoreAsync", remoting.semaphore_async, config.client_async_semaphore_value),
            ("semaphoreOneway", remoting.semaphore_oneway, config.client_oneway_semaphore_value),
        ):
            rows.append((name, total, total - semaphore.permits, semaphore.waiting))
    for producer in producers:
        sender = producer.impl.async_sender
        rows.append(("queue of the sender's threads", sender.pool.capacity, len(sender.pool.queue), 0))
        if producer.enable_backpressure_for_async_mode:
            for name, total, permits in (
                ("semaphoreAsyncSendNum", sender.async_send_num, sender.semaphore_async_send_num),
                ("semaphoreAsyncSendSize", sender.async_send_size, sender.semaphore_async_send_size),
            ):
                rows.append((name, total, total - permits.permits, permits.waiting))
    return Table(f"permits of {node.name}", ("what", "in all", "taken", "waiting"), rows)


def fault_table(producer: DefaultMQProducer) -> Table:
    """What a producer's fault table says of the brokers that it has sent to, and for how long each one rests."""
    now_ms = producer.node.now_ms()
    items = producer.impl.fault_strategy.latency_fault_tolerance.fault_item_table
    rows = [
        (item.name, item.current_latency, max(0, item.start_timestamp - now_ms), item.reachable)
        for _, item in sorted(items.items())
    ]
    off = "" if producer.send_latency_enable else " (switched off: send_latency_enable)"
    header = ("broker", "last attempt took ms", "rests for another ms", "reachable")
    return Table(f"fault table of {producer.node.name}{off}", header, rows)
