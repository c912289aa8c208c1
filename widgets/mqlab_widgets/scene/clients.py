"""What is drawn of clients: what a producer is sending; what a consumer holds and its listener has; a worker's hand."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab.protocol.topics import is_retry_topic
from mqlab_widgets.boards.stage_state import DOWN, Hand
from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.plan import BELOW, HEAD, LINE, Card
from mqlab_widgets.scene.tokens import sign, token
from mqlab_widgets.words import reason_words

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Consumer
    from mqlab_widgets.scene.scene import Look

TOKENS, CACHED, SLOT = 60, 24, 38
"""Where the messages of a consumer stand in its card, and the room for each, in the cache and in the listener."""
SENDING, TOKEN = 62, 34
"""Where the first message stands that a producer sends, behind a word, and the room for each; what could not be sent
stands at the right, and where it is tight it takes the word's room.
"""
THRESHOLD = 1_000
"""pullThresholdForQueue (DefaultMQPushConsumer): from so many messages of one queue on a consumer pulls no more."""
HELD, BELOW_HEAD, TIGHT = 26, 40, 17
"""Room for a message in a worker's hand, and for the row of them, also where it is tight."""
MOST_BESIDE, HELD_BESIDE, MORE = 3, 19, 24
"""So many are drawn beside the worker's name, the room for each, and for how many more there are."""
LEFT = 10
LIMITS = {"size": "too many MiB", "span": "too far apart"}


def fill_producer(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a producer is sending."""
    producer = board.producers.get(card.name)
    if producer is None or board.states.get(card.name) == DOWN:
        card.line("")
        return
    if room < HEAD + LINE + 34:
        card.note = (f"{producer.sent:,} sent",)
        return
    crossed = card.width - 24
    tight = bool(producer.given_up) and crossed < SENDING + TOKEN
    left = 24 if tight else SENDING
    last = crossed - 40 if producer.given_up else card.width - 16
    most = 2 if left + TOKEN <= last else 1
    keys = list(producer.under_way)[:most]
    local = [] if keys else list(producer.local)[:most]
    word = "sends" if keys else "local" if local else "idle"
    shapes = [] if tight else [f'<text class="faint" x="10" y="18">{word}</text>']
    for place, key in enumerate(local):
        picture = token(board, key, look, css="half", tip="its local part is under way")
        shapes.append(f'<g transform="translate({left + TOKEN * place} 14)">{picture}</g>')
    for place, key in enumerate(keys):
        attempts = producer.under_way[key]
        again = f'<text class="limit"{sign("tries")} x="14" y="-6">{attempts}.</text>' if attempts > 1 else ""
        shapes.append(
            f'<g transform="translate({left + TOKEN * place} 14)">{token(board, key, look, css="asked")}{again}</g>'
        )
    if producer.given_up:
        picture = token(board, producer.given_up, look, css="asked")
        shapes.append(
            f'<g transform="translate({crossed:g} 14)"><title>could not be sent</title>'
            f"{picture}{tokens.beside(tokens.cross(5))}</g>"
        )
    card.spot("sending", left, 14)
    card.row("".join(shapes), 30)
    card.lines(f"{producer.sent:,} sent" + (f", {producer.failures:,} failed" if producer.failures else ""), room)
    card.lines(reason_words(producer.last, board.lab) if producer.last else "", room, "limit")


def fill_consumer(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a consumer has."""
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
        cached = f"{consumer.cached:,} cached"
        if room >= HEAD + LINE:
            words = f"cache {consumer.cached:,}, listener {consumer.busy:,}"
            card.line(words, f"{cached}, {consumer.busy:,} busy", cached)
        else:
            card.note = (cached,)
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
            card.line(f"pops {', '.join(consumer.pops)}: owns no queue", "owns no queue")
            card.height += 22 - LINE
        else:
            _owned(board, card, owned)
    if consumer.limited:
        reason, _, numbers = consumer.limited.partition(" ")
        limit = LIMITS.get(reason, "too many")
        card.line(f"{limit}: {numbers}", limit, css="limit")
    elif not consumer.pops:
        card.line(f"{consumer.done:,} consumed")
    else:
        done, owed = f"{consumer.done:,} consumed", f"{consumer.owed:,} not acked"
        short = (f"{consumer.done:,} done, {consumer.owed:,} to ack", owed) if consumer.owed else (done,)
        card.line(f"{done}, {owed}", *short)


def _owned(board: StageBoard, card: Card, owned: list[tuple[str, str, int]]) -> None:
    brokers = {queue[0] for queue in owned}
    most = int((card.width - 20) // 27)
    shown = owned if len(owned) <= most else owned[: most - 1]
    shapes = []
    for place, (broker, topic, queue_id) in enumerate(shown):
        words = f"q{queue_id}" if len(brokers) == 1 else f"{broker[-1:]}{queue_id}"
        shapes.append(
            f'<g class="chip {card.sheet.owner_css(card.name)}"{sign("owner")} '
            f'transform="translate({10 + 12 + 27 * place} 9)">'
            f"<title>{escape(topic)} queue {queue_id} on {escape(broker)}</title>"
            f'<rect x="-12" y="-8.5" width="24" height="18" rx="5"/><text>{escape(words)}</text></g>'
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
            f"<g{sign('level')}>"
            f"<title>{fullest:,} messages of one queue; from {THRESHOLD:,} on nothing is pulled</title>"
            f'<rect class="lane" x="10" y="1" width="{wide:g}" height="8" rx="3"/>'
            f'<rect class="level" x="10" y="1" width="{wide * share:.1f}" height="8" rx="3"/>'
            f'<line class="mark" x1="{mark:g}" x2="{mark:g}" y1="-1" y2="11"/></g>',
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
        many = tokens.times(count, 9, -9) if count > 1 else ""
        key = consumer.keys.get((queue, offset)) or board.key_at(queue, offset)
        picture = token(board, key, look, 28, 26)
        shapes.append(f'<g transform="translate({TOKENS + SLOT / 2 - 1 + SLOT * place:g} 17.5)">{picture}{many}</g>')
    if len(busy) > slots:
        more = len(busy) - slots
        shapes.append(f'<text class="faint" x="{card.width - 8:g}" y="23" text-anchor="end">+{more:,}</text>')
    card.spot("listener", TOKENS + SLOT / 2 - 1 + SLOT * min(len(busy), slots - 1 if busy else 0), 17.5)
    card.row("".join(shapes), 40)


def fill_worker(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a worker has in hand, each with which delivery it is where there is room for that; beside its
    name where there is no room for a row.
    """
    hand = board.hands.get(card.name, Hand())
    if board.states.get(card.name) == DOWN:
        return
    tight, beside = room < HEAD + BELOW_HEAD, room < HEAD + TIGHT + BELOW
    middle = -14.0 if beside else 8.0 if tight else 24.0
    step = HELD_BESIDE if beside else HELD
    most = MOST_BESIDE if beside else int((card.width - 2 * LEFT) // step)
    keys = list(hand.held)[:most]
    more = len(hand.held) - len(keys)
    left = card.width - LEFT - step * len(keys) if beside else LEFT
    card.beside = card.width - LEFT - left + (MORE if more else 0) if beside else 0.0
    shapes = []
    for place, key in enumerate(keys):
        x = left + step * (place + 0.5)
        again = hand.held[key]
        words = f'<text class="limit"{sign("tries")} x="-13" y="-13">{again}.</text>' if again > 1 else ""
        picture = token(board, key, look, step - 2 if beside else step - 4, 18 if tight else 22)
        shapes.append(f'<g transform="translate({x:g} {middle:g})">{picture}{words if not tight else ""}</g>')
    if not keys and not beside:
        shapes.append(f'<text class="faint" x="{LEFT}" y="{middle + 4:g}">nothing in hand</text>')
    if more:
        x = left - 4 if beside else card.width - 8
        shapes.append(f'<text class="faint" x="{x:g}" y="{middle + 4:g}" text-anchor="end">+{more:,}</text>')
    card.spot("hand", left + step * (min(len(keys), most - 1) + 0.5 - beside), middle)
    for place, key in enumerate(keys):
        card.spot(("held", key), left + step * (place + 0.5), middle)
    card.note = (f"{hand.done:,} done",) if not (beside and keys) else ()
    card.row("".join(shapes), 0 if beside else TIGHT if tight else BELOW_HEAD)
    if hand.answer:
        card.lines(hand.answer, room, "limit")
