"""What was done in the recorded time-lines of Pop, case by case; see `what_was_done` in each of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.timelines.pop_player import PopPlayer

Case = Callable[[PopPlayer], Coroutine[Any, Any, None]]


async def no_ack_short_poll(player: PopPlayer) -> None:
    """Never acknowledge, and pop again every 300 ms without waiting."""
    await player.send("m0")
    await player.pop()
    await player.pop_every(300, 60_000)


async def no_ack_long_poll(player: PopPlayer) -> None:
    """Never acknowledge, and pop again with waiting."""
    await player.send("m0")
    while len(player.pops()) < 4:
        await player.pop(poll_ms=15_000)


async def ack_at_9500(player: PopPlayer) -> None:
    """Acknowledge half a second before the invisible time ends."""
    await _ack_at(player, 9_500)


async def ack_at_10500(player: PopPlayer) -> None:
    """Acknowledge half a second after the invisible time ended."""
    await _ack_at(player, 10_500)


async def _ack_at(player: PopPlayer, ms: float) -> None:
    await player.send("m0")
    (message,) = await player.pop()
    await player.until(player.pops()[0]["popTime"] + ms)
    await player.ack(message)
    await player.pop_every(300, 32_000)


async def ack_after_revive(player: PopPlayer) -> None:
    """Acknowledge with the first handle when the message has come again."""
    await player.send("m0")
    (message,) = await player.pop()
    while len(player.pops()) < 2:
        await player.pop(poll_ms=0, quiet=True)
        await player.node.sleep(300)
    await player.ack(message)
    await player.pop_every(300, 45_000)


async def batch_of_5_ack_3(player: PopPlayer) -> None:
    """Acknowledge three messages of a batch of five."""
    await player.send("m0", "m1", "m2", "m3", "m4")
    batch = await player.pop()
    for place in (0, 2, 3):
        await player.ack(batch[place])
    await player.pop_every(300, 32_000)


async def change_invisible_to_20s_at_5s(player: PopPlayer) -> None:
    """Ask for 20 s more after 5 s."""
    await _change_at(player, 5_000, 20_000, 45_000)


async def change_invisible_after_expiry(player: PopPlayer) -> None:
    """Ask for 10 s more half a second after the invisible time ended."""
    await _change_at(player, 10_500, 10_000, 40_000)


async def _change_at(player: PopPlayer, ms: float, invisible_ms: int, until_ms: float) -> None:
    await player.send("m0")
    (message,) = await player.pop()
    await player.until(player.pops()[0]["popTime"] + ms)
    await player.change(message, invisible_ms)
    await player.pop_every(300, until_ms)


async def revive_wait_invisible_30s(player: PopPlayer) -> None:
    """Never acknowledge what is invisible for 30 s."""
    await player.send("m0")
    await player.pop(invisible_ms=30_000)
    await player.pop_every(300, 50_000)


async def long_poll_empty(player: PopPlayer) -> None:
    """Wait twice for a message that never comes."""
    await player.pop(poll_ms=15_000)
    await player.pop(poll_ms=15_000)


async def long_poll_send_at_5s(player: PopPlayer) -> None:
    """Wait for a message that comes after 5 s, and acknowledge it."""

    async def send_later() -> None:
        await player.until(5_000)
        await player.send("m0")

    sender = player.node.spawn(send_later(), "sender").join()
    (message,) = await player.pop(poll_ms=15_000)
    await player.ack(message)
    await sender


async def ordered_no_ack_long_poll(player: PopPlayer) -> None:
    """Pop two of three messages in order, never acknowledge, and pop again with waiting."""
    await player.send("m0", "m1", "m2")
    for _ in range(5):
        await player.pop(most=2, order=True, poll_ms=15_000)


async def ordered_no_ack_short_poll(player: PopPlayer) -> None:
    """Pop two of three messages in order, never acknowledge, and pop again every 60 ms."""
    await player.send("m0", "m1", "m2")
    await player.pop(most=2, order=True)
    await player.pop_every(60, 35_000, order=True)


async def ordered_ack(player: PopPlayer) -> None:
    """Acknowledge in order and out of order."""
    await player.send("m0", "m1", "m2", "m3")
    m0, m1 = await player.pop(most=2, order=True, poll_ms=15_000)
    await player.node.sleep(1_000)
    await player.ack(m0)
    await player.pop(most=2, order=True, poll_ms=0)
    await player.ack(m1)
    _, m3 = await player.pop(most=2, order=True, poll_ms=15_000)
    await player.ack(m3)
    await player.pop(most=2, order=True, poll_ms=15_000)
    await player.pop_every(60, 28_000, most=2, order=True)


async def ordered_same_attempt(player: PopPlayer) -> None:
    """Ask again with the same attempt, then with another."""
    await player.send("m0", "m1", "m2")
    await player.pop(most=2, order=True, attempt="att-1")
    await player.node.sleep(2_000)
    await player.pop(most=2, order=True, attempt="att-1", poll_ms=0)
    await player.pop(most=2, order=True, attempt="att-2", poll_ms=0)
