"""The ledger: what the events of a world say about each message - sent, stored, delivered, consumed, given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.explore.ledger.consumption import ConsumptionBook
from mqlab.explore.ledger.names import Names
from mqlab.explore.ledger.processes import ProcessBook
from mqlab.explore.ledger.sends import SendBook
from mqlab.explore.ledger.stores import StoreBook
from mqlab.trace.bus import Row
from mqlab.trace.record import KIND

if TYPE_CHECKING:
    from mqlab.lab import Lab


class Ledger:
    """Reads the events of one world, from its beginning, into the books that the rules look into."""

    def __init__(self, lab: Lab) -> None:
        self.names = Names(lab)
        self.processes = ProcessBook()
        self.sends = SendBook(self.names)
        self.stores = StoreBook(self.names, self.processes)
        self.consumption = ConsumptionBook(self.names, self.sends, self.stores)
        self.last: Row | None = None
        self.handlers: dict[str, list[Callable[[Row], None]]] = {}
        for book in (self.sends, self.stores, self.consumption, self.processes):
            for kind, handler in book.handlers.items():
                self.handlers.setdefault(kind, []).append(handler)

    def __call__(self, row: Row) -> None:
        self.last = row
        for handler in self.handlers.get(row[KIND], ()):
            handler(row)
