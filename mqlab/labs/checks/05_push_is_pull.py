"""The checks of lab 05: how long a pull is held, what wakes it, and a student's hold service in a real broker."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from mqlab.check import Right, Wrong, lab_check
from mqlab.lab import Lab
from mqlab.protocol.message import MessageQueue
from mqlab.scenarios.waiting_room import WaitingRoom

PASS_MS = 5_000
SLACK_MS = 5


@lab_check("05/held-for", points=1)
def held_for(answer: Callable[[int, int], float], *, seed: int) -> Wrong | None:
    """A broker holds an empty pull for as long as was foretold, to 5 ms."""
    random = Random(seed)
    hold_ms, wait_ms = random.randrange(2_000, 19_000, 100), random.randrange(100, PASS_MS)
    lab = Lab(seed)
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 1)
    consumer = lab.pull_consumer("readers", broker_suspend_max_time_millis=hold_ms)
    lab.run(consumer.start())
    lab.run_for(ms=wait_ms)
    queue = MessageQueue("Orders", "broker-a", 0)
    lab.run(consumer.pull_block_if_not_found_async(queue, "*", 0, 32, lambda *_: None))
    held = lab.run_until_event("PullHeld")
    was_ms = lab.run_until_event("PullWoken").ts_ms - held.ts_ms
    ages_ms = [event.ts_ms - held.ts_ms for event in lab.history.find("HeldPullsChecked")]
    if any(abs(age_ms - hold_ms) < 2 * SLACK_MS for age_ms in ages_ms):
        return None  # a pass comes just when the time is up, and microseconds decide
    next_pass_ms = round(ages_ms[0])
    foretold = answer(next_pass_ms, hold_ms)
    if not isinstance(foretold, int | float) or abs(foretold - was_ms) > SLACK_MS:
        asked = f"held_for(next_pass_ms={next_pass_ms}, hold_ms={hold_ms})"
        told = f"{asked} is {foretold!r}, and the pull was held for {was_ms:.0f} ms"
        return Wrong(told, "\n".join(f"a pass, when the pull is {age_ms:.0f} ms old" for age_ms in ages_ms))
    return None


@lab_check("05/wakes", points=1)
def wakes(answer: Callable[[int, set[int], int, int | None], bool], *, seed: int) -> Wrong | None:
    """Notices and passes, old offsets and new ones, right tags and wrong ones: who is woken?"""
    random = Random(seed)
    codes = random.sample(range(1_000, 9_999), 3)
    pull_offset = random.randrange(50)
    cases = [
        (wanted, pull_offset + further, tags_code)
        for wanted in (set(), {codes[0]}, {codes[0], codes[1]})
        for further in (random.randrange(-1, 1), 0, 1, random.randrange(2, 9))
        for tags_code in (None, codes[0], codes[2])
    ]
    random.shuffle(cases)
    for wanted, max_offset, tags_code in cases:
        right = max_offset > pull_offset and (tags_code is None or not wanted or tags_code in wanted)
        said = answer(pull_offset, set(wanted), max_offset, tags_code)
        if bool(said) is not right:
            asked = f"wakes({pull_offset}, {wanted or 'set()'}, {max_offset}, {tags_code})"
            return Wrong(f"{asked} is {said!r}, and should be {right}")
    return None


@lab_check("05/hold", points=3)
def hold(answer: Callable[[], Any], *, seed: int) -> Right | Wrong:
    """Readers of 12 to 20 queues wait in a real broker: prompt, with no empty answer too soon, and with little work."""
    room = WaitingRoom(answer(), seed)
    room.play()
    if room.wrong:
        return Wrong(room.wrong, room.story())
    work = room.service.comparisons
    return Right({"comparisons for all arrivals": {"yours": work.done, "allowed": work.allowed}})
