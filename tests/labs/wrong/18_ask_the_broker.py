"""Plausible wrong solutions of lab 18_ask_the_broker, each of which its check catches."""

from __future__ import annotations

from typing import Any
from zlib import crc32

Items = list[tuple[int, int, int]]


def takes_strangers(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Takes all that share the slot; only what has the hash may have the key."""
    places, number = [], newest
    while number and len(places) < most:
        _, place, number = items[number]
        places.append(place)
    return places


def stops_at_a_stranger(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Ends where another hash comes; it only shares the slot, and behind it the chain goes on."""
    places, number = [], newest
    while number and len(places) < most and items[number][0] == key_hash:
        places.append(items[number][1])
        number = items[number][2]
    return places


def counts_strangers(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Makes so many steps as messages are wanted; a stranger costs a step, not a place."""
    places, number = [], newest
    for _ in range(most):
        if number:
            item_hash, place, number = items[number]
            places += [place] if item_hash == key_hash else []
    return places


def the_whole_chain(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Forgets that at most so many are wanted."""
    return takes_right(items, newest, key_hash, len(items))


def oldest_first(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Gives the newest ones, the oldest of them first; the index gives them as it finds them."""
    return takes_right(items, newest, key_hash, most)[::-1]


def without_the_slot(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """Looks through the whole file from its beginning: the oldest ones, and a step for each item there is."""
    return [place for item_hash, place, _ in items[1:] if item_hash == key_hash][:most]


def takes_right(items: Items, newest: int, key_hash: int, most: int) -> list[int]:
    """The walk itself, for those that go wrong elsewhere."""
    places, number = [], newest
    while number and len(places) < most:
        item_hash, place, number = items[number]
        places += [place] if item_hash == key_hash else []
    return places


def unknown_is_false(word: str, values: list[bool | None]) -> bool:
    """Knows true and false alone, as Python's own all and any do."""
    return any(values) if word == "OR" else all(values)


def unknown_first(word: str, values: list[bool | None]) -> bool | None:
    """Says unknown as soon as one is; another one may decide whatever it is."""
    if None in values:
        return None
    return any(values) if word == "OR" else all(values)


def or_like_and(word: str, values: list[bool | None]) -> bool | None:
    """Lets false decide an OR as well."""
    if False in values:
        return False
    return None if None in values else True


def the_first_that_is_known(word: str, values: list[bool | None]) -> bool | None:
    """Takes the first one that is not unknown for the answer."""
    return next((value for value in values if value is not None), None)


def highest_bit_first(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """Counts the bits of a byte from the left."""
    if row is None or stored_ms <= born_ms:
        return True
    return all(row[position // 8] >> 7 - position % 8 & 1 for position in positions)


def one_bit_is_enough(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """Is content with one bit of several; the others prove that the group does not want it."""
    if row is None or stored_ms <= born_ms:
        return True
    return any(row[position // 8] >> position % 8 & 1 for position in positions)


def born_in_the_same_ms(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """Trusts the bits of a message that was stored in the ms in which the condition was born."""
    if row is None or stored_ms < born_ms:
        return True
    return all(row[position // 8] >> position % 8 & 1 for position in positions)


def trusts_old_bits(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """Asks the bits of messages that are older than the condition: a new group misses them."""
    return row is None or all(row[position // 8] >> position % 8 & 1 for position in positions)


def no_row_no_message(row: bytes | None, positions: tuple[int, ...], stored_ms: int, born_ms: int) -> bool:
    """Takes no bits for bits that are not set; nobody has judged such a message."""
    if stored_ms <= born_ms:
        return True
    return row is not None and all(row[position // 8] >> position % 8 & 1 for position in positions)


class Drawers:
    """Notes that work, for those that go wrong in one place."""

    def place_of(self, city: str) -> int:
        """A number from 1 to 255 for a city."""
        return 1 + crc32(city.encode()) % 255

    def drawer_of(self, amount: int) -> int:
        """The drawer from 1 to 250 of an amount."""
        return 1 + amount // 40

    def note(self, properties: dict[str, str]) -> Any:
        """City and amount, a byte each."""
        place = self.place_of(properties["city"]) if "city" in properties else 0
        drawer = self.drawer_of(int(properties["amount"])) if "amount" in properties else 0
        return place * 256 + drawer

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        """What the byte of the property allows."""
        place, drawer = divmod(bits, 256)
        if name == "city":
            return place == self.place_of(value) if sign == "=" else place > 0
        limit = self.drawer_of(value)
        if sign == "=":
            return drawer == limit
        return drawer >= limit if sign == ">" else 0 < drawer <= limit


class StrictDrawers(Drawers):
    """Leaves out the drawer of the limit itself, in which some amounts are beyond it."""

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        drawer = bits % 256
        if name == "amount" and sign != "=":
            limit = self.drawer_of(value)
            return drawer > limit if sign == ">" else 0 < drawer < limit
        return super().may(bits, name, sign, value)


class HashOfThisProcess(Drawers):
    """Takes Python's `hash` of a text, which is another one in the process that reads."""

    def place_of(self, city: str) -> int:
        return 1 + hash(city) % 255


class CitiesInMemory(Drawers):
    """Numbers the cities as they come, in a dictionary that is gone when the broker starts anew."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def place_of(self, city: str) -> int:
        return self.known.setdefault(city, len(self.known) + 1)


class NotThisNumber(Drawers):
    """Says no to `<>` for another city with the same number."""

    def place_of(self, city: str) -> int:
        return 1 + crc32(city.encode()) % 15

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        if sign == "<>":
            return bits // 256 not in (0, self.place_of(value))
        return super().may(bits, name, sign, value)


class CityAlone(Drawers):
    """Spends all bits on the city; conditions about amounts read everything."""

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        return name == "amount" or super().may(bits, name, sign, value)


class AmountAlone(Drawers):
    """Spends all bits on the amount; a city is looked for in everything that is large enough."""

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        return name == "city" or super().may(bits, name, sign, value)


class EverythingMay(Drawers):
    """Never says no: nobody misses anything, and all is read."""

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        return True


class NothingIsMissing(Drawers):
    """Takes it for granted that each order has both properties."""

    def note(self, properties: dict[str, str]) -> Any:
        return self.place_of(properties["city"]) * 256 + self.drawer_of(int(properties["amount"]))


class TextsAsAmounts(Drawers):
    """Makes drawers of the first two digits; 9 and 90 and 9000 lie in one, and 1000 lies before 200."""

    def drawer_of(self, amount: int) -> int:
        return 1 + int(str(amount)[:2])


class TooManyBits(Drawers):
    """Notes the amount itself beside the city: more than two bytes."""

    def note(self, properties: dict[str, str]) -> Any:
        return self.place_of(properties.get("city", "")) * 10_000 + int(properties.get("amount", 0))


class TextsAsNotes(Drawers):
    """Gives a text of bits in place of a number."""

    def note(self, properties: dict[str, str]) -> Any:
        return f"{super().note(properties):016b}"


class SaysNothingOfCities(Drawers):
    """Has no return for the city."""

    def may(self, bits: int, name: str, sign: str, value: Any) -> Any:
        return super().may(bits, name, sign, value) if name == "amount" else None


WRONG = {
    "18/walk": [
        takes_strangers,
        stops_at_a_stranger,
        counts_strangers,
        the_whole_chain,
        oldest_first,
        without_the_slot,
    ],
    "18/decide": [unknown_is_false, unknown_first, or_like_and, the_first_that_is_known],
    "18/may-want": [
        highest_bit_first,
        one_bit_is_enough,
        born_in_the_same_ms,
        trusts_old_bits,
        no_row_no_message,
    ],
    "18/notes": [
        StrictDrawers,
        HashOfThisProcess,
        CitiesInMemory,
        NotThisNumber,
        CityAlone,
        AmountAlone,
        EverythingMay,
        NothingIsMissing,
        TextsAsAmounts,
        TooManyBits,
        TextsAsNotes,
        SaysNothingOfCities,
    ],
}
