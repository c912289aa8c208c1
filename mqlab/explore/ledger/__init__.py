"""The ledger of a world, in books: sends, stores, consumption and processes."""

from mqlab.explore.ledger.consumption import Delivery, GivenBack
from mqlab.explore.ledger.ledger import Ledger
from mqlab.explore.ledger.stores import StoreBook

__all__ = ["Delivery", "GivenBack", "Ledger", "StoreBook"]
