"""The inspectors of the machine that was clicked: what its parts hold now, after the last slice."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from mqlab import DefaultMQProducer, DefaultMQPushConsumer
from mqlab.errors import MqlabError
from mqlab.lab.inspectors import held_pulls_table
from mqlab.lab.pop_inspectors import held_pops_table, pop_check_points_table, revive_queues_table
from mqlab.protocol.topics import is_system_topic
from mqlab.views import FlowGauges, Table
from mqlab_widgets.breaking import state_of
from mqlab_widgets.commands import offered
from mqlab_widgets.panels import command
from mqlab_widgets.part_tree import tree_html
from mqlab_widgets.thread_pools import pools_html

if TYPE_CHECKING:
    from mqlab_widgets.session import Session

MOST_TOPICS = 12


def machine_html(session: Session) -> str:
    """Everything that is to be seen of the chosen machine; what lies in the past needs a world of its own."""
    node, offers = session.page.chosen, offered(session)
    if not node:
        return '<div class="mq-faint">Click a machine on the stage to look into it.</div>'
    if session.cursor.past:
        back = command("take_back", "play a new world up to here") if "take_back" in offers else ""
        return (
            f"<h4>{escape(node)}</h4><div>Its parts are shown as they are after the newest slice. "
            f"The boards follow the cursor.</div>"
            f'<div class="mq-row">{command("now", "go to the present")}{back}</div>'
        )
    title = f"{node} after slice {session.lab.world.slice_no:,}"
    if state_of(session.lab, node) == "down":
        start = command("restart", f"restart {node}", node=node)
        return f'<h4>{escape(title)}</h4><div class="mq-row">Nothing is in its memory: it is down. {start}</div>'
    try:
        parts = "".join(f'<section class="mq-board">{html}</section>' for html in _views(session, node))
        tree = tree_html(session.lab, node, session.page.opened)
    except MqlabError as error:
        return f"<h4>{escape(title)}</h4><div>{escape(str(error))}</div>"
    every = f'<details data-key="parts"><summary>all parts of its process</summary>{tree}</details>'
    return f'<h4>{escape(title)}</h4><div class="mq-boards">{parts}</div>{every}'


def _views(session: Session, node: str) -> Iterator[str]:
    lab, process = session.lab, session.lab.processes[node]
    for client in [client for client, *_ in getattr(process, "clients", ())]:
        yield from _client_views(session, client)
    if process in lab.brokers and process.is_up():
        yield _html(held_pulls_table([process]))
        if process.running().made_pop is not None:
            for table in (held_pops_table, pop_check_points_table, revive_queues_table):
                yield _html(table([process]))
        yield pools_html(process.running().executors.all())
        yield _queue(session, node)
    elif process in lab.name_servers and process.is_up():
        own = {*(broker.name for broker in lab.brokers), "DefaultCluster", "DefaultCluster_REPLY_TOPIC"}
        topics = process.running().route_info_manager.topic_queue_table
        asked_for = [topic for topic in topics if topic not in own and not is_system_topic(topic)]
        for topic in asked_for[:MOST_TOPICS]:
            yield _html(lab.routes(topic))


def _client_views(session: Session, client: Any) -> Iterator[str]:
    lab = session.lab
    if not hasattr(getattr(client, "impl", None), "instance"):
        yield f"{escape(client.call_name)} has not been started yet"
        return
    if isinstance(client, DefaultMQPushConsumer):
        yield _html(lab.process_queues(client))
        yield _html(FlowGauges.of(client))
    if isinstance(client, DefaultMQProducer):
        yield _html(lab.permits(client))
        if client.send_latency_enable:
            yield _html(lab.fault_table(client))
    yield _html(lab.response_table(client))


def _queue(session: Session, node: str) -> str:
    """A queue's entries and the bytes of one of its messages, with buttons to go from queue to queue."""
    lab = session.lab
    store = lab.processes[node].store  # type: ignore[attr-defined]  # a broker's
    topics = store.consume_queue_store.topics()
    known = [(topic, queue_id) for topic in sorted(topics) for queue_id in sorted(topics[topic])]
    if not known:
        return "<div>No queue has a message yet.</div>"
    topic, queue_id, offset = session.page.queue if session.page.queue[:2] in known else (*known[0], -1)
    view = lab.queue(topic, queue_id, broker=node)
    place = known.index((topic, queue_id))
    turns = (("previous queue", -1), ("next queue", 1))
    to = [_go(words, *known[(place + step) % len(known)]) for words, step in turns]
    name = f"<b>{escape(topic)}, queue {queue_id}</b>"
    if view.max_offset <= view.min_offset:
        return f'<div class="mq-row"><span>{name}: no message</span>{"".join(to)}</div>'
    newest = view.max_offset - 1
    head = f"<span>{name}: offsets {view.min_offset:,} to {newest:,}</span>"
    offset = min(max(offset if offset >= 0 else newest, view.min_offset), newest)
    to.append(_go("older message", topic, queue_id, max(offset - 1, view.min_offset)))
    to.append(_go("newer message", topic, queue_id, min(offset + 1, newest)))
    bytes_ = f"{view.entry(offset)._repr_html_()}{view.record(offset)._repr_html_()}"
    summary = f"<summary>bytes of message at offset {offset:,}</summary>"
    return f'<div class="mq-row">{head}{"".join(to)}</div><details data-key="bytes">{summary}{bytes_}</details>'


def _go(words: str, topic: str, queue_id: int, offset: int = -1) -> str:
    """A button that shows a queue, and the message in it; all four are always there, so that none moves."""
    where = f"{topic}, queue {queue_id}" + (f", offset {offset}" if offset >= 0 else "")
    return command("show_queue", words, where, about=where, topic=topic, queue_id=queue_id, offset=offset)


def _html(view: Table | FlowGauges) -> str:
    if hasattr(view, "_repr_html_"):
        return view._repr_html_()
    bundle = view._repr_mimebundle_()
    return bundle.get("image/svg+xml") or f"<pre>{escape(bundle['text/plain'])}</pre>"
