"""What is drawn of a broker, as roomy as the height allows: its topics with their queues, and its commit log."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab.protocol.topics import (
    RMQ_SYS_SCHEDULE_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
    TIMER_TOPIC,
    is_dlq_topic,
    is_retry_topic,
)
from mqlab_widgets.boards.stage_state import words_of_waiting
from mqlab_widgets.scene.plan import BELOW, HEAD, LINE, Card, Row
from mqlab_widgets.scene.queues import MOST_OWNERS, RING, RINGS, SIZES, Size, clocks, put_queue, rings
from mqlab_widgets.scene.style import CHARACTER, first_that_fits
from mqlab_widgets.scene.tokens import sliding, token

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Block, Held, Strip
    from mqlab_widgets.scene.scene import Look

LOG = 31
BLOCK = 11
LOG_WORDS = "commit log"
LOG_LEFT = len(LOG_WORDS) * CHARACTER + 8
"""Room for them, left of its records."""
SPECIAL = {
    RMQ_SYS_SCHEDULE_TOPIC: "delayed",
    TIMER_TOPIC: "timer wheel",
    RMQ_SYS_TRANS_HALF_TOPIC: "half messages",
    RMQ_SYS_TRANS_OP_HALF_TOPIC: "ends that are written down",
}
REVIVE = "rmq_sys_REVIVE_LOG"
HANDS = {TIMER_TOPIC: "M0 -7V0L5 3", RMQ_SYS_TRANS_OP_HALF_TOPIC: "M-3.5 0.3L-1 3L3.5 -3"}
"""What is drawn before a line, in a circle; for the others, an arrow that comes round."""
IN_A_LINE = (TIMER_TOPIC, REVIVE, RMQ_SYS_TRANS_OP_HALF_TOPIC)
"""Topics of which a line is enough."""
TO_READ = SIZES[:-3]
"""The sizes in which every number is easy to read. What is said of copies may make queues smaller, and makes way where
they would get another size than these.
"""
ANY_ROW = 26
"""Height of the row of pops that wait for any queue of a topic."""
SERVER_HEIGHT = HEAD + 52 + BELOW
SERVER_SHARE = 0.75
"""How high a cousin of Pop is drawn beside brokers, and at most so much of an even share: they need more room, since it
has no commit log.
"""


def topic_title(topic: str) -> str:
    """What a topic is called on the stage."""
    if is_retry_topic(topic):
        return "retry"
    if is_dlq_topic(topic):
        return "dead letters"
    return "revive" if topic.startswith(REVIVE) else SPECIAL.get(topic, topic)


def fill_broker(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a broker holds."""
    found = board.queues_of(card.name, system=True)
    own = [topic for topic in found if topic_title(topic) == topic]
    topics = {topic: found[topic] for topic in dict.fromkeys((*own, *found)) if _is_shown(topic, found[topic])}
    lined = {topic: topics.pop(topic) for topic in list(topics) if topic.startswith(IN_A_LINE)}
    queues = sum(len(strips) for strips in topics.values())
    popped = [topic for topic in topics if (card.name, topic) in board.pops]
    free = room - HEAD - LOG - 6 - (LINE if card.name in board.trouble else 0) - LINE * len(lined)
    free -= ANY_ROW * len(popped)
    titles = LINE * len(topics) if len(topics) > 1 else 0
    size, pair = _size_of(queues, free - titles), board.pair_words(card.name)
    if pair:
        smaller = _size_of(queues, free - titles - LINE)
        if smaller is size or smaller in TO_READ:
            free, size = free - LINE, smaller
        else:
            pair = ()
    if card.name in board.trouble:
        card.line(board.trouble_words(card.name), css="trouble")
    if pair:
        card.line(*pair)
    if not topics:
        card.line("no queue has a message yet")
    owners = max((len(strip.owners) for strips in topics.values() for strip in strips.values()), default=1)
    chips = min(max(1, owners), MOST_OWNERS)
    held, woken = _by_queue(board.held, card), _by_queue(board.woken, card)
    if size is not None:
        for topic, strips in topics.items():
            if len(topics) > 1:
                card.line(*_topic_words(topic, strips))
            else:
                card.note = card.note or _topic_words(topic, strips)
            for queue_id, strip in strips.items():
                queue = (topic, queue_id)
                over = rings(held.get(queue, []), woken.get(queue, []), card.width - RING, size, look)
                over += clocks(card, strip, look, size, chips)
                put_queue(board, card, queue, strip, look, size, chips, over)
            if topic in popped:
                _any_queue(card, topic, held.get((topic, -1), []), woken.get((topic, -1), []), look)
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


def fill_server(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw the queue of a share partition's broker, or of SQS."""
    queues = [
        (topic, queue_id, strip)
        for topic, strips in board.queues_of(card.name).items()
        for queue_id, strip in strips.items()
    ]
    if not queues:
        card.line("no message yet")
        return
    card.note = (f"{', '.join(topic for topic, _, _ in queues)}: {board.cousin_words(card.name)}", queues[0][0])
    size = _size_of(len(queues), room - HEAD) or SIZES[-1]
    for topic, queue_id, strip in queues:
        put_queue(board, card, (topic, queue_id), strip, look, size, 1, clocks(card, strip, look, size, 1))


def _size_of(queues: int, free: float) -> Size | None:
    """The largest size in which so many queues fit into this room; None when none fits."""
    return next((size for size in SIZES if queues * size.row <= free), None)


def _by_queue(pulls: dict[str, dict[tuple[int, str], Held]], card: Card) -> dict[tuple[str, int], list[Held]]:
    """The pulls that are at a broker, by topic and queue."""
    found: dict[tuple[str, int], list[Held]] = {}
    for pull in pulls.get(card.name, {}).values():
        found.setdefault((pull.topic, pull.queue_id), []).append(pull)
    return found


def _behind(card: Card, topic: str, strips: dict[int, Strip]) -> None:
    """What RocketMQ itself puts aside, in a line: all that moves there is drawn by boards of its own."""
    for queue_id in strips:
        card.spot(("queue", topic, queue_id), 22, 8)
        card.spot(("next", topic, queue_id), 22, 8)
    hand = HANDS.get(topic, "M4.5 3A5 5 0 1 0 1 5")
    shape = f'<g transform="translate(18 8)"><circle class="dial" r="7"/><path class="hand" d="{hand}"/></g>'
    words = escape(first_that_fits(_topic_words(topic, strips), card.width - 44))
    card.row(f'{shape}<text class="faint" x="32" y="12">{words}</text>', LINE)


def _any_queue(card: Card, topic: str, held: list[Held], woken: list[Held], look: Look) -> None:
    """The pops that wait for whichever queue of a topic gets a message."""
    card.spot(("ring", topic, -1), card.width - RING, 11)
    words = f"{len(held)} wait for any queue" if held else "nobody waits"
    words = f'<text class="faint" x="{card.width - RINGS - 6:g}" y="15" text-anchor="end">{words}</text>'
    card.row(f"{words}{rings(held, woken, card.width - RING, SIZES[-3], look, 11)}", ANY_ROW)


def _is_shown(topic: str, queues: dict[int, Strip]) -> bool:
    """System topics and retry topics only when something is in them."""
    if topic in SPECIAL or topic.startswith(REVIVE) or is_retry_topic(topic):
        return any(strip.end for strip in queues.values())
    return topic_title(topic) != topic or not topic.startswith(("rmq_sys_", "RMQ_SYS_", "TRANS_", "OFFSET_MOVED"))


def _topic_words(topic: str, strips: dict[int, Strip]) -> tuple[str, ...]:
    """What is said of a topic, in wordings from long to short."""
    waiting = sum(strip.waiting() for strip in strips.values())
    count = sum(strip.end for strip in strips.values())
    if topic in (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC):
        one = waiting == 1
        told = f"{SPECIAL[topic]}: {waiting:,} message{' waits' if one else 's wait'}"
        return f"{told} for {'its' if one else 'their'} time", told
    if topic == RMQ_SYS_TRANS_HALF_TOPIC:
        hidden = sum(strip.hidden() for strip in strips.values())
        return (f"half messages: {hidden:,} hidden" if hidden else "half messages: none is hidden any more",)
    if topic == RMQ_SYS_TRANS_OP_HALF_TOPIC:
        return f"{SPECIAL[topic]}: in {count:,} message{'' if count == 1 else 's'}", f"ends: {count:,}"
    if topic.startswith(REVIVE):
        told = f"revive queues: {count:,} check points and acks, {waiting:,} to be read"
        return told, f"revive queues: {count:,}, {waiting:,} to be read"
    unnoted = sum(strip.unnoted() for strip in strips.values())
    short = f"{topic_title(topic)}: {count:,}"
    left = f", {words_of_waiting(strips.values())}" if waiting else ""
    noted = f", {unnoted:,} not noted" if unnoted else ""
    how = "popped" if any(strip.handed for strip in strips.values()) else "consumed"
    whole = f"{short} message{'' if count == 1 else 's'}{left}"
    told = f", {unnoted:,} {how} but not noted" if unnoted else ""
    return f"{whole}{told}", f"{whole}{noted}", f"{short}{left}{noted}", f"{short}{left or noted}", short


def _summed_up(board: StageBoard, card: Card, topic: str, strips: dict[int, Strip]) -> None:
    held = sum(1 for pull in board.held.get(card.name, {}).values() if pull.topic == topic)
    wordings = _topic_words(topic, strips)
    queues = f", {len(strips):,} queues"
    pulls = f", {held:,} pulls held" if held else ""
    card.line(*(f"{words}{more}" for words in wordings for more in (queues + pulls, queues, "")))


def _log(board: StageBoard, card: Card, look: Look) -> None:
    log = board.logs.get(card.name)
    most = _most_blocks(card)
    blocks = [] if log is None or most < 2 else log.shown()[-(most - 1) :]
    ends = (0, 0) if log is None else (log.end, log.flushed)
    copied = board.copied_of(card.name) or 0
    drawn_from = (card.width, look.followed, card.name in board.trouble, ends, copied, blocks)
    card.put(card.sheet.row((card.name, "log"), drawn_from, lambda: _log_row(board, card, look, blocks, copied, *ends)))


def _most_blocks(card: Card) -> int:
    """How many records the commit log has room for."""
    return max(1, int((card.width - 20 - LOG_LEFT - 70) // BLOCK))


def _log_row(
    board: StageBoard, card: Card, look: Look, blocks: list[Block], copied: int, end: int, flushed: int
) -> Row:
    left, most = LOG_LEFT, _most_blocks(card)
    shapes = [
        f'<text class="faint" x="10" y="22">{LOG_WORDS}</text>',
        f'<rect class="lane{" full" if card.name in board.trouble else ""}" x="{10 + left:g}" y="8" '
        f'width="{most * BLOCK + 4:g}" height="20" rx="4"/>',
    ]
    for place, block in enumerate(blocks):
        fresh = block.offset + block.size > flushed
        more = sliding(f"b{block.offset}", 10 + left + 2 + place * BLOCK + BLOCK / 2, 18)
        css, tip = ("slide fresh", ", not on the disk yet") if fresh else ("slide", "")
        if block.offset + block.size <= copied:
            css, tip = f"{css} copied", f"{tip}, a slave has it"
        tip = f"byte {block.offset:,}{tip}"
        shapes.append(token(board, block.key, look, BLOCK - 1, 16, css=css, more=more, tip=tip))
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
