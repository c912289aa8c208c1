"""Plausible wrong solutions of lab 17_copies, each of which its check catches."""

from __future__ import annotations

from collections.abc import Callable

from mqlab.exercises.accident_day import Copy, Place, right_answer

Records = list[tuple[int, int]]


def by_their_begin(records: Records, end: int) -> int:
    """Counts a record as there when its first byte is."""
    return sum(offset >= end for offset, _ in records)


def one_too_many(records: Records, end: int) -> int:
    """Takes the end for the last byte that is there: a record that ends just there is counted as missing."""
    return sum(offset + size >= end for offset, size in records)


def counts_bytes(records: Records, end: int) -> int:
    """Gives the bytes that are missing, not the records."""
    return max(0, records[-1][0] + records[-1][1] - end)


def without_the_master(end: int, reports: list[int], brokers: int, waited_ms: int, timeout_ms: int) -> str | None:
    """Counts slaves alone, and forgets that the master is one of the brokers."""
    if sum(report >= end for report in reports) >= brokers:
        return "PUT_OK"
    return "FLUSH_SLAVE_TIMEOUT" if waited_ms > timeout_ms else None


def one_byte_more(end: int, reports: list[int], brokers: int, waited_ms: int, timeout_ms: int) -> str | None:
    """Wants a report beyond the end of the message."""
    if 1 + sum(report > end for report in reports) >= brokers:
        return "PUT_OK"
    return "FLUSH_SLAVE_TIMEOUT" if waited_ms > timeout_ms else None


def fails_at_once(end: int, reports: list[int], brokers: int, waited_ms: int, timeout_ms: int) -> str | None:
    """Gives up before the time is over."""
    return "PUT_OK" if 1 + sum(report >= end for report in reports) >= brokers else "FLUSH_SLAVE_TIMEOUT"


def all_slaves(end: int, reports: list[int], brokers: int, waited_ms: int, timeout_ms: int) -> str | None:
    """Waits for all slaves that are there, however many copies were asked for."""
    if all(report >= end for report in reports):
        return "PUT_OK"
    return "FLUSH_SLAVE_TIMEOUT" if waited_ms > timeout_ms else None


def disk_alone(ends: list[int], flushed: int, reported: int, accident: str) -> int:
    """After a loss of power looks at the master's disk alone, as if there were no slave."""
    kept = {"power off": flushed, "disk lost": reported}.get(accident, ends[-1])
    return sum(end > kept for end in ends)


def both_needed(ends: list[int], flushed: int, reported: int, accident: str) -> int:
    """Counts what is not on both: one of them is enough."""
    kept = {"power off": min(flushed, reported), "disk lost": reported}.get(accident, ends[-1])
    return sum(end > kept for end in ends)


def a_kill_takes_memory(ends: list[int], flushed: int, reported: int, accident: str) -> int:
    """Takes a killed process for a machine without power: its pages are the system's, and stay."""
    kept = {"network cut": ends[-1], "disk lost": reported}.get(accident, max(flushed, reported))
    return sum(end > kept for end in ends)


def a_cut_loses(ends: list[int], flushed: int, reported: int, accident: str) -> int:
    """Thinks that what is not copied is lost when the network is cut."""
    kept = {"power off": max(flushed, reported), "process killed": ends[-1]}.get(accident, reported)
    return sum(end > kept for end in ends)


def only_the_wanted(addresses: dict[int, str], wanted: int, write: bool) -> str | None:
    """Asks nobody when the wanted broker is gone."""
    return addresses.get(0 if write else wanted)


def _read(addresses: dict[int, str], wanted: int) -> str:
    after = [wanted, wanted + 1] if wanted else [wanted]
    return next((addresses[one] for one in after if one in addresses), next(iter(addresses.values())))


def writes_to_anybody(addresses: dict[int, str], wanted: int, write: bool) -> str | None:
    """Lets a slave take messages when there is no master."""
    return addresses.get(0, next(iter(addresses.values()))) if write else _read(addresses, wanted)


def always_the_master(addresses: dict[int, str], wanted: int, write: bool) -> str | None:
    """Reads from the master as long as there is one, whoever was suggested."""
    return addresses.get(0) or (None if write else _read(addresses, wanted))


def without_the_next(addresses: dict[int, str], wanted: int, write: bool) -> str | None:
    """Takes the first of the route at once when the slave that was wanted is gone."""
    return addresses.get(0) if write else addresses.get(wanted, next(iter(addresses.values())))


Rule = Callable[[Place, dict[str, Copy], dict[str, str]], str]


def _seen_as(change: Callable[[Copy], Copy], rename: dict[str, str]) -> Rule:
    """The right rule, with offsets or accidents that are seen in a wrong way."""

    def rule(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
        seen = {name: change(copy) for name, copy in copies.items()}
        return right_answer(message, seen, {name: rename.get(what, what) for name, what in accidents.items()})

    return rule


def what_is_stored_is_safe(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Takes memory for a disk: a broker that loses power keeps all that it had."""
    return _seen_as(lambda copy: copy._replace(flushed=copy.end), {})(message, copies, accidents)


def slaves_have_all(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Forgets that a slave which came late begins with the master's last file."""
    return _seen_as(lambda copy: copy._replace(begin=0), {})(message, copies, accidents)


def only_disks_count(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Thinks that a killed process loses what was not flushed."""
    return _seen_as(lambda copy: copy, {"process killed": "power off"})(message, copies, accidents)


def no_luck(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Says that what was not flushed is gone: single pages may have been written all the same."""
    said = right_answer(message, copies, accidents)
    return "nobody" if said == "luck" else said


def luck_first(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Speaks of luck as soon as the master may have it, although a slave certainly does."""
    alone = right_answer(message, {"broker-a": copies["broker-a"]}, accidents)
    return alone if alone == "luck" else right_answer(message, copies, accidents)


def the_end_is_outside(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Takes an end for the last byte: a message that ends just where a copy does is missing."""
    return right_answer((message[0], message[1] + 1), copies, accidents)


def one_slave(message: Place, copies: dict[str, Copy], accidents: dict[str, str]) -> str:
    """Asks the first slave alone."""
    first = dict(list(copies.items())[:2])
    return right_answer(message, first, accidents)


WRONG = {
    "17/not-yet": [by_their_begin, one_too_many, counts_bytes],
    "17/answer": [without_the_master, one_byte_more, fails_at_once, all_slaves],
    "17/gone": [disk_alone, both_needed, a_kill_takes_memory, a_cut_loses],
    "17/whom": [only_the_wanted, writes_to_anybody, always_the_master, without_the_next],
    "17/who-has": [
        what_is_stored_is_safe,
        slaves_have_all,
        only_disks_count,
        no_luck,
        luck_first,
        the_end_is_outside,
        one_slave,
    ],
}
