"""What is drawn of clients: what a producer is sending; what a consumer holds and what its listener has."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab.protocol.topics import is_retry_topic
from mqlab_widgets.boards.stage_state import DOWN
from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.plan import HEAD, LINE, Card
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
