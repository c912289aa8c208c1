"""The checks of lab 18: a walk through the index, AND and OR with unknowns, bits of groups, notes of orders."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqlab.check import Cases, NotSolvedYet, Right, Wrong, lab_check
from mqlab.check.own_process import in_own_process
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.late_readers import CONDITIONS, ORDERS, LateReaders, Notes
from mqlab.filter import BitsArray, BloomFilter
from mqlab.filter.expression import BooleanConstantExpression, LogicExpression

Item = tuple[int, int, int]
"""Hash of the key, place in the commit log, number of the item before it in the slot (0: none)."""

NOTING, LATER = 1, 2
"""The salts of the two processes in which notes are written and read."""


@lab_check("18/walk", points=1)
def walk(answer: Callable[[list[Item], int, int, int], list[int]], *, seed: int) -> Wrong | None:
    """Chains of an index file, short and long, in which several keys share a slot."""
    random, cases = Random(f"18/walk/{seed}"), Cases()
    for _ in range(4):
        hashes = random.sample(range(1_000), random.randint(1, 3))
        items, newest, place = [(0, 0, 0)], dict.fromkeys(("ours", "other"), 0), random.randrange(1_000)
        for number in range(1, random.randint(3, 22)):
            slot = "ours" if random.random() < 0.7 else "other"
            of_slot = hashes if slot == "ours" else [one + 1_000 for one in hashes]
            items.append((random.choice(of_slot), place, newest[slot]))
            newest[slot] = number
            place += random.randint(200, 400)
        most, key_hash = random.randint(1, 5), random.choice(hashes)
        want: list[int] = []
        number = newest["ours"]
        while number and len(want) < most:
            item_hash, at, number = items[number]
            want += [at] if item_hash == key_hash else []
        got = answer(list(items), newest["ours"], key_hash, most)
        asked = f"walk({items}, {newest['ours']}, {key_hash}, {most})"
        cases.note(want, got == want or Wrong(f"{asked} is {want}, and yours says {got!r}"))
    return cases.result


@lab_check("18/decide", points=1)
def decide(answer: Callable[[str, list[bool | None]], bool | None], *, seed: int) -> Wrong | None:
    """Rows of up to nine comparisons that are true, false or unknown, joined by AND and by OR."""
    random, cases = Random(f"18/decide/{seed}"), Cases()
    for word in ("AND", "OR"):
        decides = word == "OR"
        for wanted in (True, False, None):
            drawn: list[bool | None] = [not decides]
            if wanted is not (not decides):
                drawn.append(None)
            if wanted is decides:
                drawn.append(decides)
            values = random.choices(drawn, k=random.randint(3, 6)) + drawn
            random.shuffle(values)
            parts = [BooleanConstantExpression(value) for value in values]
            want = LogicExpression([*parts], decides).evaluate({})
            got = answer(word, list(values))
            right = got is want
            cases.note(want, right or Wrong(f"decide({word!r}, {values}) is {want}, and yours says {got!r}"))
    return cases.result


@lab_check("18/may-want", points=1)
def may_want(answer: Callable[[bytes | None, tuple[int, ...], int, int], bool], *, seed: int) -> Wrong | None:
    """Rows in which a group's bits are set, or all but one, and orders without bits, or older than the group."""
    random, cases = Random(f"18/may-want/{seed}"), Cases()
    bloom = BloomFilter(random.choice((10, 20, 30)), random.choice((4, 8, 32)))
    for kind in ("set", "not set", "no row", "older", "same ms", "not set"):
        group = bloom.generate(f"group-{random.randrange(10_000)}#Orders")
        row = BitsArray(bloom.m)
        left_out = None if kind == "set" else random.choice(group.bit_pos)
        for position in (*group.bit_pos, *random.sample(range(bloom.m), bloom.m // 3)):
            if position != left_out:
                row.set_bit(position)
        born = random.randrange(10_000, 90_000)
        stored = born + {"older": -random.randint(1, 9_000), "same ms": 0}.get(kind, random.randint(1, 9_000))
        data = None if kind == "no row" else row.bytes
        want = data is None or stored <= born or bloom.is_hit(group, row)
        got = answer(data, group.bit_pos, stored, born)
        shown = "None" if data is None else " ".join(f"{byte:08b}" for byte in data)
        asked = f"may_want(row, {group.bit_pos}, {stored}, {born})"
        told = f"{asked} is {want}, and yours says {got!r}"
        cases.note(want, got is want or Wrong(told, f"the bytes of row, in bits: {shown}"))
    return cases.result


@lab_check("18/notes", points=4)
def notes(answer: type, *, seed: int) -> Wrong | Right:
    """A hundred orders are noted in two bytes each; the broker starts anew; readers with eight conditions come."""

    def made(salt: int) -> Callable[[], Notes]:
        return in_own_process(answer, salt)

    world = LateReaders(made(NOTING), made(LATER), seed)
    try:
        world.play()
    except SimulationError as error:
        # Notes are made in a task of the broker's, which dies of what goes wrong there.
        if not isinstance(error.__cause__, LearnerError) or isinstance(error.__cause__, NotSolvedYet):
            raise
        return Wrong(str(error.__cause__))
    except LearnerError as error:
        if isinstance(error, NotSolvedYet):
            raise
        return Wrong(str(error))
    if world.wrong:
        return Wrong(world.wrong, trace=world.trace)
    every = ORDERS * CONDITIONS
    return Right({"orders read": {"yours": world.read, "all of them": every, "had to": world.wanted}})
