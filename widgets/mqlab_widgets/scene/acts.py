"""What moves: for each event the tokens that fly, land, move or die, and how long the story rests on it.

The page animates; where from and where to is said here, in the scene's own units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC
from mqlab_widgets.boards.stage_copies import piece_id, report_id
from mqlab_widgets.boards.stage_state import COMMIT, COPY, DELAYED, OUTSIDE, REPORT, ROLLBACK
from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.scene import rest_of
from mqlab_widgets.story_clock import FLIGHT_MS

if TYPE_CHECKING:
    from mqlab.trace.record import Record
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Flight
    from mqlab_widgets.scene.plan import Point
    from mqlab_widgets.scene.scene import Scene

OUTCOMES = (COMMIT, ROLLBACK)
"""Frames that say how a transaction ended."""
HALF_QUEUE = ("queue", RMQ_SYS_TRANS_HALF_TOPIC, 0)
"""Where half messages lie in a broker."""
LAND_MS = 160
MOVE_MS = 260
FLASH_MS = 300
MOST_MOVED = 4
"""So many messages of one pull are seen to go into the cache."""

RESTS = {
    "SendAttempted": 120, "SendAttemptFailed": 300, "SendFailed": 350, "MessageSendReceived": 120,
    "PopWoken": 140, "PopHeld": 50, "MessagesTaken": 160, "AckBuffered": 140, "AckStored": 140, "OrderAcked": 140,
    "InvisibleTimeChanged": 200, "MessageRevived": 400,
    "HalfMessageHidden": 200, "LocalTransactionExecuted": 250, "LocalTransactionRemembered": 250,
    "TransactionChecked": 250, "TransactionEnded": 250, "HalfMessageGivenUp": 500,
    "PullWoken": 140, "PullHeld": 50, "OffsetUpdated": 50, "CommitLogFlushed": 140, "PutRefused": 300,
    "ConsumeFinished": 120, "FlowControlled": 160, "MessageGivenBack": 200, "MessagesPolled": 200,
    "QueueAllocated": 120, "QueueDropped": 120,
    "NodeStarted": 300, "NodeCrashed": 600, "PowerLost": 600, "NodeFrozen": 400, "NodeThawed": 300,
    "LinkCut": 200, "LinkHealed": 200, "DiskHung": 300, "DiskUnhung": 300, "DiskSlowed": 300,
    "DiskQuick": 300, "DiskFullChanged": 300,
    "RecordLetGo": 400, "StartOffsetMoved": 160, "ShareStateRead": 300, "SqsMessageRedriven": 400, "WorkAnswered": 160,
    "ReplicaPutWaiting": 120, "ReplicaPutAnswered": 160, "MasterConnected": 200, "MasterDisconnected": 300,
    "StoreRecovered": 400, "ClientStarted": 150, "ClientStopped": 200, "BrokerStarted": 200,
}  # fmt: skip
"""Event kind -> ms for which the story rests on it, of those where nothing moves."""
FLASHES = {
    *("ConsumeFinished", "SendAttemptFailed", "SendFailed", "PutRefused", "FlowControlled", "MessageRevived"),
    "RecordLetGo",
}


ROUTINE = (
    "PullHeld", "PullWoken", "PopHeld", "PopWoken", "OffsetUpdated", "CommitLogFlushed", "MessagesPolled",
    "ReplicaAcked",
)  # fmt: skip
"""What belongs to the everyday of a machine, of what the story rests on."""
ENDS = (
    "NodeCrashed", "PowerLost", "ConnectionBroken", "ConnectionClosed", "MasterDisconnected", "ReplicaDisconnected",
)  # fmt: skip
"""What may end the flight of frames."""


class Act(NamedTuple):
    """A movement. `act` is "fly" (a token comes up and travels to where it waits), "land" (the token `id` goes on from
    where it is and vanishes at the end of the path), "move" (comes up, travels, vanishes), "lost" (the token `id` dies
    where it is), "flash" (a light at the path's beginning) or "flow" (`n` pulses along the path).
    """

    act: str
    id: str
    path: tuple[float, ...]
    ms: int
    svg: str = ""
    n: int = 1


class Moves(NamedTuple):
    """What one event moves; how long the story rests on it (0: on to the next at once), when its picture is shown, and
    the flight that ends with it.
    """

    acts: tuple[Act, ...] = ()
    rest_ms: int = 0
    after_ms: int = 0
    arrives: str = ""

    @property
    def seen(self) -> bool:
        """Whether there is anything to be seen."""
        return bool(self.acts or self.rest_ms or self.arrives)


NOTHING = Moves()


def acts_of(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """What the event moves. The board has taken it already; `scene` is what was drawn last."""
    kind = record.kind
    if kind in ("RequestSent", "ResponseSent"):
        return _sent(record, board, scene)
    if kind in ("RequestReceived", "ResponseReceived"):
        return _received(record, board, scene)
    mover = _MOVERS.get(kind)
    if mover is not None:
        return mover(record, board, scene)
    rest = RESTS.get(kind, 0)
    acts: list[Act] = []
    if board.lost and kind in ENDS:
        acts += [Act("lost", name, (), FLASH_MS) for name in board.lost]
    if kind in FLASHES:
        spot = _spot_of(record, board, scene)
        if spot is not None:
            acts.append(Act("flash", f"{kind}@{record.node}", spot, FLASH_MS))
    return Moves(tuple(acts), rest) if acts or rest else NOTHING


def is_routine(record: Record, board: StageBoard) -> bool:
    """Whether the event is nothing that a message does: a frame without one (a heartbeat, a question for a route, an
    empty answer to a pull), or housekeeping. The board has taken it already.
    """
    if record.kind in ("RequestSent", "ResponseSent"):
        connection, frame, local = record.row[8:11]
        name = f"{connection}:{local}:{frame}"
        return _is_empty(board.flights.get(name) or board.given.get(name))
    if record.kind in ("RequestReceived", "ResponseReceived"):
        return _is_empty(board.landed.get(record.node))
    return record.kind in ROUTINE


def _is_empty(flight: Flight | None) -> bool:
    return flight is None or flight.kind in ("other", REPORT) or (flight.kind in ("pull", "answer") and not flight.keys)


def _sent(record: Record, board: StageBoard, scene: Scene) -> Moves:
    connection, frame, local = record.row[8:11]
    name = f"{connection}:{local}:{frame}"
    given = board.given.get(name)
    return _leaves(name, board, scene) if given is None else _passes(name, given, board, scene)


def _passes(name: str, flight: Flight, board: StageBoard, scene: Scene) -> Moves:
    """A frame on all of its way from a program outside, or to one: of the other end nothing is known."""
    lane = scene.lane(flight.source, flight.target)
    if lane is None:
        return NOTHING
    ms = FLIGHT_MS if flight.kind in ("send", "back") else 0
    return Moves((Act("move", name, lane, FLIGHT_MS, tokens.frame(board, flight)),), ms, ms)


def _leaves(name: str, board: StageBoard, scene: Scene) -> Moves:
    """A frame begins its flight."""
    flight = board.flights.get(name)
    lane = scene.lane(flight.source, flight.target) if flight is not None else None
    if flight is None or lane is None:
        return NOTHING
    ahead = sum((other.source, other.target) == (flight.source, flight.target) for other in board.flights.values()) - 1
    spots = _spots(flight)
    start = scene.spot(flight.source, *spots) if spots else None
    path = (*(start or ()), *lane[:2], *rest_of(lane, ahead))
    return Moves((Act("fly", name, path, FLIGHT_MS, tokens.frame(board, flight)),))


def _received(record: Record, board: StageBoard, scene: Scene) -> Moves:
    connection, frame, _, remote = record.row[8:12]
    name = f"{connection}:{remote}:{frame}"
    came = board.landed.get(record.node)
    if came is not None and came.source == OUTSIDE:
        return _passes(name, came, board, scene)
    return _arrives(name, record.node, board, scene)


def _arrives(name: str, node: str, board: StageBoard, scene: Scene) -> Moves:
    """A frame ends its flight, and goes to where it belongs in the machine."""
    flight = board.landed.get(node)
    lane = scene.lane(flight.source, flight.target) if flight is not None else None
    if flight is None or lane is None:
        return NOTHING
    inside: Point | None = None
    if flight.kind == "pull" and flight.queue is not None and not flight.response:
        inside = scene.spot(flight.target, ("ring", *flight.queue[1:]))
    elif flight.kind in ("answer", "question"):
        inside = scene.spot(flight.target, "sending")
    elif flight.kind in (COPY, REPORT):
        inside = scene.spot(flight.target, "log")
    elif flight.kind in OUTCOMES:
        inside = scene.spot(flight.target, HALF_QUEUE)
    with_messages = flight.kind == "pull" and flight.messages > 0
    heavy = with_messages or flight.kind in ("send", "back", "question", COPY, *OUTCOMES)
    act = Act("land", name, (*rest_of(lane), *lane[2:], *(inside or ())), LAND_MS, tokens.frame(board, flight))
    return Moves((act,), LAND_MS if heavy else 0, LAND_MS if heavy else 0, name)


def _spots(flight: Flight) -> list[object]:
    if flight.queue is not None:
        return [("ring", *flight.queue[1:]), "cache"]
    if flight.kind in (COPY, REPORT):
        return ["log"]
    if flight.kind == "question":
        return [HALF_QUEUE]
    return ["sending", "listener"] if flight.kind in ("send", "back", *OUTCOMES) else []


def _piece_sent(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """From the master's commit log on the way to the slave."""
    return _leaves(piece_id(board.name_of(record.remote), record.commit_log_offset), board, scene)


def _piece_appended(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """Into the slave's commit log; and its report sets out."""
    slave, begin = record.node, record.commit_log_offset
    report = report_id(slave, begin + record.body_bytes)
    if report not in board.flights:
        return NOTHING
    landed = _arrives(piece_id(slave, begin), slave, board, scene)
    return landed._replace(acts=(*landed.acts, *_leaves(report, board, scene).acts))


def _reported(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """A report reaches the master."""
    landed = board.landed.get(record.node)
    if landed is None or landed.kind != REPORT:
        return NOTHING
    return _arrives(report_id(board.name_of(record.remote), record.ack_offset), record.node, board, scene)


def _spot_of(record: Record, board: StageBoard, scene: Scene) -> Point | None:
    if record.kind == "RecordLetGo":
        return scene.spot(record.node, ("cell", board.said(record)[1]))
    if record.kind == "MessageRevived":
        return scene.spot(record.node, ("queue", record.retry_topic, 0), ("queue", record.topic, record.queue_id))
    return scene.spot(
        record.node,
        *{"ConsumeFinished": ("listener",), "FlowControlled": ("cache",)}.get(record.kind, ("sending", "log")),
    )


def _stored(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """From the door (or from the queue of delayed messages) into the commit log."""
    key = record.unique_key
    came = board.landed.get(record.node)
    carries = came is not None and came.kind not in OUTCOMES and (key in came.keys or came.source == OUTSIDE)
    lane = scene.lane(came.source, came.target) if came is not None and key and carries else None
    start = lane[2:] if lane is not None else scene.spot(record.node, *_homes(board, record.node, key))
    return _moved(board, [key], record.node, start, scene.spot(record.node, "log"))


def _homes(board: StageBoard, node: str, key: str) -> list[object]:
    """Where a message was in its broker before it is stored again: among the delayed ones, or the half messages, or
    where it was popped.
    """
    mine = [queue for queue in board.strips if queue[0] == node]
    delayed = [queue for queue in mine if queue[1] == DELAYED]
    popped = [queue for queue in mine if key in (board.key_at(queue, one) or "-" for one in board.strips[queue].popped)]
    hidden = [queue for queue in mine if queue[1] == RMQ_SYS_TRANS_HALF_TOPIC]
    half = [queue for queue in hidden if any(cell.key == key for cell in board.strips[queue].cells)]
    return [("queue", *queue[1:]) for queue in (*delayed, *half, *reversed(popped))]


def _dispatched(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """From the commit log into its queue."""
    queue = (record.node, record.topic, record.queue_id)
    place = ("next", record.topic, record.queue_id)
    target = scene.spot(record.node, place, ("queue", *place[1:]))
    return _moved(
        board, [board.key_at(queue, record.queue_offset)], record.node, scene.spot(record.node, "log"), target
    )


def _cached(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """From the wire into the cache."""
    queue = board.queue_of(record)
    first = board.consumers[record.node].pulled - record.messages
    keys = [board.key_at(queue, first + place) for place in range(min(record.messages, MOST_MOVED))]
    lane = scene.lane(queue[0], record.node)
    return _moved(board, keys, record.node, lane[2:] if lane is not None else None, scene.spot(record.node, "cache"))


def _started(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """From the cache into the listener."""
    keys = [board.key_at(board.home_of(record), record.queue_offset)]
    return _moved(board, keys, record.node, scene.spot(record.node, "cache"), scene.spot(record.node, "listener"), 200)


def _produced(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """A cousin's message, from who sends it into its queue."""
    sender, key = board.said(record)
    topic = record.queue if record.kind == "SqsMessageSent" else record.topic
    end = scene.spot(record.node, ("next", topic, 0))
    return _sent_on(sender, record.node, scene.spot(sender), end, scene, tokens.message(board.label(key)))


def _taken(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """Into a worker's hand: from its door, where a frame of Pop has brought it, or from the cousin's queue."""
    worker, server = record.worker, board.server_of(record.worker)
    key = board.orders.get((server, record.order_name), "")
    end = scene.spot(worker, "hand")
    if record.system == "pop":
        lane = scene.lane(server, worker)
        return _moved(board, [key], worker, lane[2:] if lane is not None else None, end)
    return _sent_on(server, worker, scene.spot(server, ("cell", key)), end, scene, tokens.message(board.label(key)))


def _said(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """A worker's word about a message that it has in hand, to the cousin that gave it."""
    worker, key = board.said(record)
    refused = record.kind == "AcknowledgementRefused" or (record.kind == "SqsMessageDeleted" and not record.deleted)
    start, end = scene.spot(worker, ("held", key), "hand"), scene.spot(record.node, ("cell", key))
    return _sent_on(worker, record.node, start, end, scene, tokens.cross(5) if refused else tokens.ack())


def _sent_on(source: str, target: str, start: Point | None, end: Point | None, scene: Scene, svg: str) -> Moves:
    """All of the way between two machines, in one go."""
    lane = scene.lane(source, target)
    if lane is None or start is None or end is None:
        return NOTHING
    return Moves((Act("move", f"{source}>{target}", (*start, *lane, *end), FLIGHT_MS, svg),), FLIGHT_MS, FLIGHT_MS)


def _moved(
    board: StageBoard, keys: list[str], node: str, start: Point | None, end: Point | None, dwell_ms: int = 0
) -> Moves:
    if start is None or end is None:
        return Moves((), MOVE_MS)
    acts = tuple(
        Act("move", f"{node}:{place}:{key}", (*start, *end), MOVE_MS, tokens.message(board.label(key)))
        for place, key in enumerate(keys)
    )
    return Moves(acts, MOVE_MS + dwell_ms, MOVE_MS)


_MOVERS = {
    "MessageStored": _stored,
    "MessageDispatched": _dispatched,
    "MessagesCached": _cached,
    "ConsumeStarted": _started,
    "RecordProduced": _produced,
    "SqsMessageSent": _produced,
    "WorkTaken": _taken,
    "RecordAcknowledged": _said,
    "AcknowledgementRefused": _said,
    "SqsMessageDeleted": _said,
    "SqsVisibilityChanged": _said,
    "ReplicaDataSent": _piece_sent,
    "ReplicaDataAppended": _piece_appended,
    "ReplicaAcked": _reported,
}
