"""The checks of lab 17: what is not copied yet, when a master answers, what is gone, whom to ask, who has a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from mqlab.check import Cases, Wrong, is_number, lab_check
from mqlab.exercises.accident_day import ANSWERS, AccidentDay, Foretold, WhoHas

Record = tuple[int, int]
"""Where a record begins in the commit log, and its size."""

ACCIDENTS = ("process killed", "power off", "disk lost", "network cut")


def _records(random: Random, count: int) -> list[Record]:
    """Records that lie one behind the other."""
    at, found = random.randrange(0, 90_000), []
    for _ in range(count):
        size = random.randrange(150, 2_500)
        found.append((at, size))
        at += size
    return found


@lab_check("17/not-yet", points=1)
def not_yet(answer: Callable[[list[Record], int], int], *, seed: int) -> Wrong | None:
    """A log is copied, or flushed, up to an offset: before all its records, between two, in the middle of one."""
    random, cases = Random(f"17/not-yet/{seed}"), Cases()
    records = _records(random, random.randint(4, 12))
    first, last = random.choice(records), records[-1]
    inside = first[0] + random.randrange(1, first[1])
    before = random.randrange(records[0][0] + 1)
    for end in (first[0], inside, first[0] + first[1], last[0] + last[1], records[0][0], before):
        want = sum(offset + size > end for offset, size in records)
        got = answer(list(records), end)
        shown = "\n".join(f"bytes {offset:,} to {offset + size:,}" for offset, size in records)
        told = f"up to {end:,} all is there: {want} records are not yet, and yours says {got!r}"
        cases.note(want, (is_number(got) and got == want) or Wrong(told, shown))
    return cases.result


@lab_check("17/answer", points=1)
def answers(answer: Callable[[int, list[int], int, int, int], str | None], *, seed: int) -> Wrong | None:
    """Messages that wait for one copy or several, of up to three slaves that are behind, just there or ahead."""
    random, cases = Random(f"17/answer/{seed}"), Cases()
    for _ in range(12):
        end, timeout_ms = random.randrange(1_000, 10**6), random.randrange(1_000, 5_000)
        reports = [end + random.choice((-random.randrange(1, 900), 0, random.randrange(900))) for _ in range(3)]
        reports = reports[: random.randint(0, 3)]
        brokers = random.randint(1, 3)
        waited_ms = random.choice((random.randrange(timeout_ms), timeout_ms + random.randrange(1, 500)))
        enough = 1 + sum(report >= end for report in reports) >= brokers
        want = "PUT_OK" if enough else "FLUSH_SLAVE_TIMEOUT" if waited_ms > timeout_ms else None
        got = answer(end, list(reports), brokers, waited_ms, timeout_ms)
        asked = f"answer({end}, {reports}, {brokers}, {waited_ms}, {timeout_ms})"
        cases.note(want, got == want or Wrong(f"{asked} is {want!r}, and yours says {got!r}"))
    return cases.result


@lab_check("17/gone", points=1)
def gone(answer: Callable[[list[int], int, int, str], int], *, seed: int) -> Wrong | None:
    """Four accidents happen to a master whose disk and whose slave are behind, now this one, now that one."""
    random, cases = Random(f"17/gone/{seed}"), Cases()
    for _ in range(2):
        records = _records(random, random.randint(5, 14))
        ends = [offset + size for offset, size in records]
        flushed, reported = (random.choice((*ends, random.randrange(records[0][0], ends[-1]))) for _ in range(2))
        for accident in ACCIDENTS:
            kept = {"power off": max(flushed, reported), "disk lost": reported}.get(accident, ends[-1])
            want = sum(end > kept for end in ends)
            got = answer(list(ends), flushed, reported, accident)
            asked = f"gone({ends}, {flushed}, {reported}, {accident!r})"
            cases.note(want, (is_number(got) and got == want) or Wrong(f"{asked} is {want}, and yours says {got!r}"))
    return cases.result


@lab_check("17/whom", points=1)
def whom(answer: Callable[[dict[int, str], int, bool], str | None], *, seed: int) -> Wrong | None:
    """A route with a master and slaves, some of which are gone; who is asked for messages, and who is sent some?"""
    random, cases = Random(f"17/whom/{seed}"), Cases()
    for _ in range(6):
        there = sorted(random.sample(range(4), random.randint(1, 3)))
        addresses = {number: f"10.{random.randrange(256)}.0.{number + 2}:10911" for number in there}
        wanted = random.randrange(4)
        for write in (False, True):
            found = [addresses[one] for one in _asked(wanted) if one in addresses]
            want = addresses.get(0) if write else (*found, addresses[there[0]])[0]
            got = answer(dict(addresses), wanted, write)
            told = f"whom({addresses}, {wanted}, {write}) is {want!r}, and yours says {got!r}"
            cases.note(want, got == want or Wrong(told))
    return cases.result


def _asked(wanted: int) -> tuple[int, ...]:
    """The ids that a consumer looks for: of a slave that is gone the next one, too."""
    return (wanted, wanted + 1) if wanted else (wanted,)


@lab_check("17/who-has", points=4)
def who_has(answer: WhoHas, *, seed: int) -> Wrong | None:
    """A master and its slaves are killed, lose power or their disks, all at once, and each order is looked for."""
    day, cases = AccidentDay(answer, seed).play(), Cases()
    for foretold in day.foretold:
        cases.note(foretold.right, foretold.said == foretold.right or _wrong(day, foretold))
    return cases.result


def _wrong(day: AccidentDay, foretold: Foretold) -> Wrong:
    order, said, right = foretold.order, foretold.said, foretold.right
    told = f"order {order.number}: it follows from the offsets that {right} has it, and yours says {said!r}"
    if said not in ANSWERS:
        told = f"order {order.number}: {said!r} is none of {_listed(ANSWERS)}"
    have = " and ".join(foretold.have) or "nobody"
    return Wrong(f"{told}. When all was over {have} had it", day.story(foretold))


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words))
