"""What is drawn of each machine, as roomy as the height allows: queues with their pointers, the commit log, held pulls;
what a producer is sending; what a consumer holds and what its listener has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, is_dlq_topic, is_retry_topic
from mqlab_widgets.boards.stage import DOWN
from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.plan import HEAD, LINE, Card, Point, Row
from mqlab_widgets.scene.style import CHARACTER, fit
from mqlab_widgets.words import reason_words

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import Held, StageBoard
    from mqlab_widgets.boards.stage_state import Block, Cell, Consumer, Strip
    from mqlab_widgets.scene.scene import Look

LABEL = 38
"""Room for the name of a queue, left of it."""
CHIP, RINGS, RING = 27, 46, 22
"""Room for an owner and for held pulls, right of a queue; so far from the card's right end stands the first pull."""
MOST_OWNERS = 2
POINTERS = {"noted": "M0 -3L9 11L-9 11Z", "read": "M0 1L5 9L-5 9Z"}
LOG = 34
TOKENS, CACHED, SLOT = 60, 24, 38
"""Where the messages of a consumer stand in its card, and the room for each, in the cache and in the listener."""
BLOCK = 11
THRESHOLD = 1_000
"""pullThresholdForQueue (DefaultMQPushConsumer): from so many messages of one queue on a consumer pulls no more."""
LIMITS = {"size": "too many MiB", "span": "too far apart"}
SPECIAL = {
    RMQ_SYS_SCHEDULE_TOPIC: "delayed",
    TIMER_TOPIC: "timer wheel",
    "RMQ_SYS_TRANS_HALF_TOPIC": "half messages",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": "half: done",
}
REVIVE = "rmq_sys_REVIVE_LOG"
ANY_ROW = 26
"""Height of the row of pops that wait for any queue of a topic."""


class Size(NamedTuple):
    """How large the queues of a broker are drawn."""

    cell: float
    height: float
    row: float
    pointer: float
    """How large its pointers are drawn."""


SIZES = (
    Size(40, 34, 64, 1.2),
    Size(33, 28, 52, 1),
    Size(30, 24, 43, 1),
    Size(26, 20, 34, 0.8),
    Size(23, 15, 27, 0.7),
    Size(23, 15, 20, 0.5),
    Size(12, 9, 13, 0),
)


def fill(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a machine holds; `room` is the height that it may take."""
    if card.kind in ("broker", "slave"):
        _broker(board, card, look, room)
    elif card.kind == "producer":
        _producer(board, card, look, room)
    elif card.kind == "consumer":
        _consumer(board, card, look, room)


def css_of(board: StageBoard, key: str, look: Look) -> str:
    """The style classes of a message: lit when its trail is shown, faint when that of another is."""
    return "" if not look.followed else "lit" if key == look.followed else "unlit"


def token(
    board: StageBoard,
    key: str,
    look: Look,
    width: float = tokens.SIZE,
    height: float = tokens.SIZE,
    *,
    css: str = "",
    veil: bool = False,
    more: str = "",
    tip: str = "",
) -> str:
    """A message that can be clicked."""
    label = board.label(key)
    if key:
        does = f'data-do="follow" data-message="{escape(key, quote=True)}" role="button"'
        more += f' {does} aria-label="message {label}"'
    css = f"{css} {css_of(board, key, look)}"
    return tokens.message(label, width, height, css=css, veil=veil, more=more, tip=tip)


def _sliding(name: str, x: float, y: float) -> str:
    """The attributes of what slides to a new place when that changes; `name` is its own among its neighbours."""
    return f' data-key="{name}" style="transform:translate({x:g}px,{y:g}px)"'


def short(name: str) -> str:
    """A name for a chip: "c1" of "consumer-1"."""
    head, _, number = name.rpartition("-")
    return f"{head[:1]}{number}" if head and number.isdigit() and len(number) < 3 else name[:3]


# -- brokers --------------------------------------------------------------------------------------------------------


def topic_title(topic: str) -> str:
    """What a topic is called on the stage."""
    if is_retry_topic(topic):
        return "retry"
    if is_dlq_topic(topic):
        return "dead letters"
    return "revive" if topic.startswith(REVIVE) else SPECIAL.get(topic, topic)


def _broker(board: StageBoard, card: Card, look: Look, room: float) -> None:
    found = board.queues_of(card.name, system=True)
    own = [topic for topic in found if topic_title(topic) == topic]
    topics = {topic: found[topic] for topic in dict.fromkeys((*own, *found)) if _is_shown(topic, found[topic])}
    lined = {topic: topics.pop(topic) for topic in list(topics) if topic.startswith((TIMER_TOPIC, REVIVE))}
    queues = sum(len(strips) for strips in topics.values())
    popped = [topic for topic in topics if (card.name, topic) in board.pops]
    free = room - HEAD - LOG - 6 - (LINE if card.name in board.trouble else 0) - LINE * len(lined)
    free -= ANY_ROW * len(popped)
    if card.name in board.trouble:
        card.line(board.trouble[card.name], "trouble")
    if not topics:
        card.line("no queue has a message yet")
    owners = max((len(strip.owners) for strips in topics.values() for strip in strips.values()), default=1)
    chips = min(max(1, owners), MOST_OWNERS)
    titles = LINE * len(topics) if len(topics) > 1 else 0
    size = next((size for size in SIZES if queues * size.row + titles <= free), None)
    held: dict[tuple[str, int], list[Held]] = {}
    for pull in board.held.get(card.name, {}).values():
        held.setdefault((pull.topic, pull.queue_id), []).append(pull)
    if size is not None:
        for topic, strips in topics.items():
            if len(topics) > 1:
                card.line(_topic_line(topic, strips))
            else:
                card.note = card.note or _topic_line(topic, strips)
            for queue_id, strip in strips.items():
                rings = _rings(held.get((topic, queue_id), []), card.width - RING, size, look)
                rings += _clocks(card, strip, look, size, chips)
                _queue(board, card, (topic, queue_id), strip, look, size, chips, rings)
            if topic in popped:
                _any_queue(card, topic, held.get((topic, -1), []), look)
    else:
        most = max(1, int(free // LINE))
        shown = list(topics.items())[: most if len(topics) <= most else most - 1]
        for topic, strips in shown:
            for queue_id in strips:
                card.spot(("queue", topic, queue_id), card.width - RINGS, 8)
                card.spot(("ring", topic, queue_id), card.width - 20, 8)
            _summed_up(board, card, topic, strips)
        if len(topics) > len(shown):
            card.line(f"and {len(topics) - len(shown):,} more topics")
    for topic, strips in lined.items():
        _behind(card, topic, strips)
    _log(board, card, look)


def _behind(card: Card, topic: str, strips: dict[int, Strip]) -> None:
    """What RocketMQ itself puts aside, in a line: all that moves there is drawn by boards of its own."""
    for queue_id in strips:
        card.spot(("queue", topic, queue_id), 22, 8)
        card.spot(("next", topic, queue_id), 22, 8)
    hand = "M0 -7V0L5 3" if topic == TIMER_TOPIC else "M4.5 3A5 5 0 1 0 1 5"
    shape = f'<g transform="translate(18 8)"><circle class="dial" r="7"/><path class="hand" d="{hand}"/></g>'
    words = escape(fit(_topic_line(topic, strips), card.width - 44))
    card.row(f'{shape}<text class="faint" x="32" y="12">{words}</text>', LINE)


def _any_queue(card: Card, topic: str, held: list[Held], look: Look) -> None:
    """The pops that wait for whichever queue of a topic gets a message."""
    card.spot(("ring", topic, -1), card.width - RING, 11)
    words = f"{len(held)} wait for any queue" if held else "nobody waits"
    words = f'<text class="faint" x="{card.width - RINGS - 6:g}" y="15" text-anchor="end">{words}</text>'
    card.row(f"{words}{_rings(held, card.width - RING, SIZES[-3], look, 11)}", ANY_ROW)


def _is_shown(topic: str, queues: dict[int, Strip]) -> bool:
    """System topics and retry topics only when something is in them."""
    if topic in SPECIAL or topic.startswith(REVIVE) or is_retry_topic(topic):
        return any(strip.end for strip in queues.values())
    return topic_title(topic) != topic or not topic.startswith(("rmq_sys_", "RMQ_SYS_", "TRANS_", "OFFSET_MOVED"))


def _topic_line(topic: str, strips: dict[int, Strip]) -> str:
    waiting = sum(strip.waiting() for strip in strips.values())
    if topic in (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC):
        return f"{SPECIAL[topic]}: {waiting:,} message{'s wait for their' if waiting != 1 else ' waits for its'} time"
    if topic.startswith(REVIVE):
        count = sum(strip.end for strip in strips.values())
        return f"revive queues: {count:,} check points and acks, {waiting:,} to be read"
    unnoted = sum(strip.unnoted() for strip in strips.values())
    count = sum(strip.end for strip in strips.values())
    told = f"{topic_title(topic)}: {count:,} message{'' if count == 1 else 's'}"
    popped = any(strip.popped for strip in strips.values())
    told += f", {waiting:,} not {'popped' if popped else 'consumed'}" if waiting else ""
    return told + (f", {unnoted:,} not noted" if unnoted else "")


def _summed_up(board: StageBoard, card: Card, topic: str, strips: dict[int, Strip]) -> None:
    held = sum(1 for pull in board.held.get(card.name, {}).values() if pull.topic == topic)
    words = f"{_topic_line(topic, strips)}, {len(strips):,} queues"
    card.line(words + (f", {held:,} pulls held" if held else ""))


def _queue(
    board: StageBoard, card: Card, queue: tuple[str, int], strip: Strip, look: Look, size: Size, chips: int, over: str
) -> None:
    owners = {name: card.sheet.owner_css(name) for name in sorted(strip.owners)}
    drawn_from = (
        *(card.width, size, chips, look.followed, owners, strip.end, tuple(strip.cells), tuple(strip.popped.items())),
        *((group, strip.read_by(group), strip.committed.get(group, 0)) for group in strip.groups()),
    )

    def draw() -> Row:
        return _queue_row(board, card.width, queue, strip, owners, look, size, chips)

    card.put(card.sheet.row((card.name, *queue), drawn_from, draw), over)


def _queue_row(
    board: StageBoard, width: float, queue: tuple[str, int], strip: Strip, owners: dict[str, str], look: Look,
    size: Size, chips: int,
) -> Row:  # fmt: skip
    topic, queue_id = queue
    most, low = _view(width, strip, size, chips)
    middle = size.height / 2 + 2
    shapes = [_label(queue_id, topic, size)]
    css = f'class="owned {next(iter(owners.values()))}"' if owners else ""
    shapes.append(
        f'<g {css}><rect class="lane" x="{LABEL}" y="1" width="{most * size.cell + 2:g}" '
        f'height="{size.height + 2:g}" rx="4"/></g>'
    )

    def across(offset: int) -> float:
        return LABEL + 1 + (min(max(offset, low), low + most) - low) * size.cell

    read = min((strip.read_by(group) for group in strip.groups()), default=0)
    noted = min((strip.committed.get(group, 0) for group in strip.groups()), default=0)
    for cell in strip.cells:
        if cell.offset >= low:
            css = _state_of(strip, cell.offset, read, noted)
            shapes.append(_cell(board, cell, across(cell.offset), middle, look, size, css))
    if strip.end - low < most:
        x = across(strip.end)
        shapes.append(
            f'<rect class="next" x="{x + 2:g}" y="4" width="{size.cell - 4:g}" height="{size.height - 4:g}" rx="4"/>'
        )
    if size.pointer and strip.groups():
        shapes += _pointers(strip, low, across, size)
    if read < low and strip.groups():
        shapes.append(
            f'<text class="limit" x="{LABEL + 4}" y="{size.height + 14:g}">‹ {low - read:,} more wait</text>'
            if size.row > size.height + 12
            else ""
        )
    shapes += _chips(owners, width - RINGS - 4, middle, size)
    newest = across(strip.end - 1) + size.cell / 2 if strip.end else LABEL + size.cell / 2
    spots: dict[Hashable, Point] = {
        ("next", topic, queue_id): (across(strip.end) + size.cell / 2, middle),
        ("queue", topic, queue_id): (newest, middle),
        ("ring", topic, queue_id): (width - RING, middle),
    }
    return Row("".join(shapes), size.row, spots)


def _label(queue_id: int, topic: str, size: Size) -> str:
    if size.height < 13:
        return ""
    words = f"q{queue_id}" if topic != RMQ_SYS_SCHEDULE_TOPIC else f"lvl {queue_id + 1}"
    return f'<text class="faint" x="10" y="{size.height / 2 + 6:g}">{words}</text>'


def _view(width: float, strip: Strip, size: Size, chips: int) -> tuple[int, int]:
    """How many entries of a queue there is room for, and which is the first of them."""
    room = width - LABEL - chips * CHIP - RINGS - 6
    most = max(1, int(room // size.cell))
    return most, max(0, strip.end - most + 1)


def _state_of(strip: Strip, offset: int, read: int, noted: int) -> str:
    """The style class of an entry: done with, done with and not noted, out with a consumer, brought back."""
    out = strip.popped.get(offset)
    if out is not None:
        done = "done" if offset < noted else "unnoted"
        return {"out": "out", "revived": "done revived"}.get(out.state, done)
    return "done" if offset < noted else "unnoted" if offset < read else ""


def _clocks(card: Card, strip: Strip, look: Look, size: Size, chips: int) -> str:
    """What is left of the time for which each popped message is hidden."""
    most, low = _view(card.width, strip, size, chips)
    shapes = []
    for offset, out in strip.popped.items():
        if out.state == "out" and low <= offset < low + most and offset < strip.end:
            left = min(1.0, max(0.0, (out.until_us - look.now_us) / max(1, out.until_us - out.since_us)))
            x, wide = LABEL + 1 + (offset - low) * size.cell + 3, (size.cell - 6) * left
            tip = f"<title>hidden from others for {max(0, out.until_us - look.now_us) / 1_000_000:.1f} s more</title>"
            place = f'x="{x:g}" y="{size.height - 3:g}" width="{wide:.1f}" height="4"'
            shapes.append(f'<rect class="clock" {place}>{tip}</rect>')
    return "".join(shapes)


def _cell(board: StageBoard, cell: Cell, x: float, middle: float, look: Look, size: Size, css: str) -> str:
    return token(
        *(board, cell.key, look, size.cell - 3, size.height - 2),
        css=f"slide {css}",
        veil=css == "unnoted",
        more=_sliding(f"c{cell.offset}", x + size.cell / 2, middle),
        tip=f"offset {cell.offset:,}",
    )


def _pointers(strip: Strip, low: int, across: Callable[[int], float], size: Size) -> list[str]:
    y = size.height + 4
    shapes = []
    for group in strip.groups()[:3]:
        read, noted = strip.read_by(group), strip.committed.get(group, 0)
        far = "handed out" if strip.popped else "consumed"
        for css, offset, words in (("noted", noted, "noted by the broker"), ("read", read, far)):
            if offset >= low:
                tip = f"<title>{escape(group)}: {words} up to offset {offset:,}</title>"
                shapes.append(
                    f'<g class="slide"{_sliding(f"{css}:{escape(group)}", across(offset), y)}>'
                    f'<path class="{css}" d="{POINTERS[css]}" transform="scale({size.pointer:g})">{tip}</path></g>'
                )
    return shapes


def _rings(held: list[Held], x: float, size: Size, look: Look, y: float = 0) -> str:
    """The pulls that are held for a queue, each emptying as its time passes."""
    shapes = []
    y, radius = y or size.height / 2 + 2, min(12, size.height / 2)
    for place, pull in enumerate(held[:3]):
        left = 1 - (look.now_us - pull.since_us) / 1_000 / max(1, pull.hold_ms)
        tip = f"<title>a pull of {escape(pull.consumer)}, held since {pull.since_us / 1_000:,.1f} ms</title>"
        picture = tokens.pull_ring(radius, min(1.0, max(0.0, left)))
        shapes.append(f'<g class="held" transform="translate({x - 7 * place:g} {y:g})">{tip}{picture}</g>')
    return "".join(shapes)


def _chips(owners: dict[str, str], x: float, y: float, size: Size) -> list[str]:
    if size.height < 13:
        return []
    return [
        f'<g class="chip {css}" transform="translate({x - 12 - CHIP * place:g} {y:g})">'
        f'<title>{escape(name)} pulls from this queue</title><rect x="-11" y="-8" width="22" height="16" rx="8"/>'
        f"<text>{escape(short(name))}</text></g>"
        for place, (name, css) in enumerate(list(owners.items())[:MOST_OWNERS])
    ]


def _log(board: StageBoard, card: Card, look: Look) -> None:
    log = board.logs.get(card.name)
    left = len("commit log") * CHARACTER + 8
    most = int((card.width - 20 - left - 70) // BLOCK)
    blocks = [] if log is None else log.shown()[-(most - 1) :]
    ends = (0, 0) if log is None else (log.end, log.flushed)
    drawn_from = (card.width, look.followed, card.name in board.trouble, ends, blocks)
    card.put(card.sheet.row((card.name, "log"), drawn_from, lambda: _log_row(board, card, look, blocks, *ends)))


def _log_row(board: StageBoard, card: Card, look: Look, blocks: list[Block], end: int, flushed: int) -> Row:
    words = "commit log"
    left = len(words) * CHARACTER + 8
    most = int((card.width - 20 - left - 70) // BLOCK)
    shapes = [
        f'<text class="faint" x="10" y="22">{words}</text>',
        f'<rect class="lane{" full" if card.name in board.trouble else ""}" x="{10 + left:g}" y="8" '
        f'width="{most * BLOCK + 4:g}" height="20" rx="4"/>',
    ]
    for place, block in enumerate(blocks):
        fresh = block.offset + block.size > flushed
        more = _sliding(f"b{block.offset}", 10 + left + 2 + place * BLOCK + BLOCK / 2, 18)
        css, tip = ("slide fresh", ", not flushed yet") if fresh else ("slide", "")
        tip = f"byte {block.offset:,}{tip}"
        shapes.append(token(board, block.key, look, BLOCK - 1, 16, css=css, veil=fresh, more=more, tip=tip))
    shapes.append(f'<text class="faint" x="{card.width - 10:g}" y="22" text-anchor="end">{_size(end)}</text>')
    newest = 10 + left + 2 + min(len(blocks), most - 1) * BLOCK + BLOCK / 2
    return Row("".join(shapes), LOG, {"log": (newest, 18)})


def _size(count: int) -> str:
    return (
        f"{count:,} B"
        if count < 10_000
        else f"{count / 1024:,.1f} KiB"
        if count < 10**7
        else f"{count / 2**20:,.1f} MiB"
    )


# -- clients --------------------------------------------------------------------------------------------------------


def _producer(board: StageBoard, card: Card, look: Look, room: float) -> None:
    producer = board.producers.get(card.name)
    if producer is None or board.states.get(card.name) == DOWN:
        card.line("")
        return
    if room < HEAD + LINE + 34:
        card.note = f"{producer.sent:,} sent"
        return
    keys = list(producer.under_way)[:2]
    shapes = [f'<text class="faint" x="10" y="18">{"sends" if keys else "idle"}</text>']
    for place, key in enumerate(keys):
        attempts = producer.under_way[key]
        again = f'<text class="limit" x="14" y="-6">{attempts}.</text>' if attempts > 1 else ""
        shapes.append(
            f'<g transform="translate({62 + 34 * place} 14)">{token(board, key, look, css="asked")}{again}</g>'
        )
    if producer.given_up:
        picture = token(board, producer.given_up, look, css="asked")
        shapes.append(
            f'<g transform="translate({card.width - 24:g} 14)"><title>could not be sent</title>'
            f"{picture}{tokens.cross(9)}</g>"
        )
    card.spot("sending", 62, 14)
    card.row("".join(shapes), 30)
    card.line(f"{producer.sent:,} sent" + (f", {producer.failures:,} failed" if producer.failures else ""))
    if room >= HEAD + 2 * LINE + 34:
        card.line(reason_words(producer.last, board.lab) if producer.last else "", "limit")


def _consumer(board: StageBoard, card: Card, look: Look, room: float) -> None:
    if board.states.get(card.name) == DOWN:
        card.line("")
        return
    consumer = board.consumers.get(card.name)
    if consumer is None:
        card.line("")
        return
    if room < HEAD + LINE + 73 + 4:
        card.spot("cache", 40, -8)
        card.spot("listener", card.width - 40, -8)
        words = f"cache {consumer.cached:,}, listener {consumer.busy:,}"
        if room >= HEAD + LINE:
            card.line(words)
        else:
            card.note = f"{consumer.cached:,} cached"
        return
    _cache(board, card, look, consumer)
    _listener(board, card, look, consumer)
    owned = [
        queue
        for queue, strip in sorted(board.strips.items())
        if card.name in strip.owners and not is_retry_topic(queue[1])
    ]
    if room >= HEAD + LINE + 73 + 22 + 4:
        if consumer.pops:
            card.line(f"pops {', '.join(consumer.pops)}: owns no queue")
            card.height += 22 - LINE
        else:
            _owned(board, card, owned)
    if consumer.limited:
        reason, _, numbers = consumer.limited.partition(" ")
        card.line(f"{LIMITS.get(reason, 'too many')}: {numbers}", "limit")
    else:
        owed = f", {consumer.owed:,} not acked" if consumer.pops else ""
        card.line(f"{consumer.done:,} consumed{owed}")


def _owned(board: StageBoard, card: Card, owned: list[tuple[str, str, int]]) -> None:
    brokers = {queue[0] for queue in owned}
    most = int((card.width - 20) // 27)
    shown = owned if len(owned) <= most else owned[: most - 1]
    shapes = []
    for place, (broker, topic, queue_id) in enumerate(shown):
        words = f"q{queue_id}" if len(brokers) == 1 else f"{broker[-1:]}{queue_id}"
        shapes.append(
            f'<g class="chip {card.sheet.owner_css(card.name)}" transform="translate({10 + 12 + 27 * place} 9)">'
            f"<title>{escape(topic)} queue {queue_id} on {escape(broker)}</title>"
            f'<rect x="-12" y="-8" width="24" height="16" rx="8"/><text>{escape(words)}</text></g>'
        )
    if len(owned) > len(shown):
        shapes.append(f'<text class="faint" x="{10 + 27 * len(shown)}" y="13">+{len(owned) - len(shown):,}</text>')
    if not owned:
        shapes.append('<text class="faint" x="10" y="13">has no queue</text>')
    card.row("".join(shapes), 22)


def _cache(board: StageBoard, card: Card, look: Look, consumer: Consumer) -> None:
    most = max(1, int((card.width - TOKENS - 44) // CACHED))
    waiting = consumer.waiting(most)
    shapes = [
        '<text class="faint" x="10" y="20">cache</text>',
        f'<rect class="lane" x="{TOKENS}" y="2" width="{most * CACHED + 4}" height="27" rx="4"/>',
    ]
    keys = [*(board.key_at(*place) for place in waiting), *consumer.popped][:most]
    for place, key in enumerate(keys):
        picture = token(board, key, look, CACHED - 2, 22)
        shapes.append(f'<g transform="translate({TOKENS + 2 + CACHED * (place + 0.5):g} 15.5)">{picture}</g>')
    more = sum(high - low for ranges in consumer.ranges.values() for low, high in ranges) + len(consumer.popped)
    more -= len(keys)
    if more > 0:
        shapes.append(f'<text class="faint" x="{card.width - 8:g}" y="20" text-anchor="end">+{more:,}</text>')
    card.spot("cache", TOKENS + 2 + CACHED * (min(len(keys), most - 1) + 0.5), 15.5)
    card.row("".join(shapes), 33)
    fullest = max(consumer.counts.values(), default=0)
    if fullest >= THRESHOLD / 10:
        wide = card.width - 20
        share = min(1.0, fullest / (THRESHOLD * 1.2))
        mark = 10 + wide / 1.2
        card.row(
            f"<title>{fullest:,} messages of one queue; from {THRESHOLD:,} on nothing is pulled</title>"
            f'<rect class="lane" x="10" y="1" width="{wide:g}" height="8" rx="3"/>'
            f'<rect class="level" x="10" y="1" width="{wide * share:.1f}" height="8" rx="3"/>'
            f'<line class="mark" x1="{mark:g}" x2="{mark:g}" y1="-1" y2="11"/>',
            13,
        )


def _listener(board: StageBoard, card: Card, look: Look, consumer: Consumer) -> None:
    most = max(1, int((card.width - TOKENS - 44) // SLOT))
    busy = list(consumer.listening.items())
    slots = max(1, min(most, len(busy)))
    shapes = ['<text class="faint" x="10" y="23">listener</text>']
    for place in range(slots):
        x = TOKENS + SLOT * place
        shapes.append(f'<rect class="slot" x="{x}" y="1" width="{SLOT - 2}" height="33" rx="7"/>')
    for place, ((queue, offset), count) in enumerate(busy[:slots]):
        many = f'<text class="faint" x="9" y="-9">{count}</text>' if count > 1 else ""
        key = consumer.keys.get((queue, offset)) or board.key_at(queue, offset)
        picture = token(board, key, look, 28, 26)
        shapes.append(f'<g transform="translate({TOKENS + SLOT / 2 - 1 + SLOT * place:g} 17.5)">{picture}{many}</g>')
    if len(busy) > slots:
        more = len(busy) - slots
        shapes.append(f'<text class="faint" x="{card.width - 8:g}" y="23" text-anchor="end">+{more:,}</text>')
    card.spot("listener", TOKENS + SLOT / 2 - 1 + SLOT * min(len(busy), slots - 1 if busy else 0), 17.5)
    card.row("".join(shapes), 40)


def title(card: Card, words: str) -> str:
    """The head of a card."""
    bold = CHARACTER * 1.15
    room = card.width - 20
    left = room - len(words) * bold - 12
    note = fit(card.note, left) if left >= 40 or left >= len(card.note) * CHARACTER else ""
    tip = f"<title>{escape(card.note)}</title>" if note != card.note else ""
    return (
        f'<text class="head" x="10" y="18">{escape(fit(words, room / 1.15))}</text>'
        f'<text class="faint" x="{card.width - 10:g}" y="18" text-anchor="end">{escape(note)}{tip}</text>'
    )
