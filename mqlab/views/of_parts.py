"""Views of RocketMQ's own objects: a command, a message, a process queue, a route."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.views.labelled_bytes import LabelledBytes
from mqlab.views.layouts import label_frame
from mqlab.views.table import Table

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.protocol import MessageExt, RemotingCommand
    from mqlab.protocol.route import TopicRouteData


def view_command(command: RemotingCommand) -> LabelledBytes:
    """A remoting command as the bytes that travel, labelled."""
    return label_frame(command.encode())


def view_message(message: MessageExt) -> Table:
    """A received message, field by field."""
    fields = (
        "topic",
        "queue_id",
        "queue_offset",
        "tags",
        "keys",
        "body",
        "msg_id",
        "offset_msg_id",
        "born_timestamp",
        "store_timestamp",
        "reconsume_times",
        "commit_log_offset",
        "store_size",
    )
    rows = [(name, getattr(message, name)) for name in fields]
    rows += [(f"property {name}", value) for name, value in message.properties.items()]
    return Table("message", ("field", "value"), rows)


def view_process_queue(process_queue: ProcessQueue) -> Table:
    """What a consumer has pulled of one queue and not yet consumed for good."""
    rows = [(offset, m.msg_id, m.tags, len(m.body)) for offset, m in process_queue.msg_tree_map.items()]
    about = f"{process_queue.msg_count} messages, {process_queue.msg_size} bytes, span {process_queue.max_span()}"
    return Table(f"process queue: {about}", ("offset", "message id", "tags", "body bytes"), rows, most=20)


def view_route(route: TopicRouteData) -> Table:
    """The route of a topic: its queues on each broker, and where the brokers are."""
    addresses = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
    rows = [
        (q.broker_name, addresses.get(q.broker_name, {}).get(0, ""), q.write_queue_nums, q.read_queue_nums, q.perm)
        for q in route.queue_datas
    ]
    return Table("route", ("broker", "master", "write queues", "read queues", "perm"), rows)


VIEWS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("mqlab.protocol.command", "RemotingCommand"): view_command,
    ("mqlab.protocol.message", "MessageExt"): view_message,
    ("mqlab.client.consumer.process_queue", "ProcessQueue"): view_process_queue,
    ("mqlab.protocol.route", "TopicRouteData"): view_route,
}
"""(module, class) -> its view: what a notebook shows of an object whose class knows nothing of notebooks."""
