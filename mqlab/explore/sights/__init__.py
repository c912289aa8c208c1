"""Goals that no rule is about, by subject: what must be seen for the passes of many worlds to mean anything."""

from mqlab.explore.sights.copies import SightsOfCopies
from mqlab.explore.sights.filters import SightsOfFilters
from mqlab.explore.sights.groups import SightsOfGroups
from mqlab.explore.sights.offsets import SightsOfOffsets
from mqlab.explore.sights.pop import (
    SightsOfBuffers,
    SightsOfOrderedPops,
    SightsOfPop,
    SightsOfPopRecords,
    SightsOfRevival,
)
from mqlab.explore.sights.proxies import SightsOfProxies
from mqlab.explore.sights.pulling import SightsOfPulling
from mqlab.explore.sights.retries import SightsOfDelays, SightsOfRetries, SightsOfTimers
from mqlab.explore.sights.routes import SightsOfCalls, SightsOfReplies, SightsOfRoutes
from mqlab.explore.sights.sending import SightsOfSending
from mqlab.explore.sights.sights import Sight, Sights, seen
from mqlab.explore.sights.stores import SightsOfStores
from mqlab.explore.sights.transactions import SightsOfTransactions

SIGHTS: tuple[type[Sights], ...] = (
    SightsOfSending,
    SightsOfPulling,
    SightsOfFilters,
    SightsOfGroups,
    SightsOfOffsets,
    SightsOfRetries,
    SightsOfDelays,
    SightsOfTimers,
    SightsOfPop,
    SightsOfBuffers,
    SightsOfRevival,
    SightsOfOrderedPops,
    SightsOfPopRecords,
    SightsOfTransactions,
    SightsOfCopies,
    SightsOfStores,
    SightsOfRoutes,
    SightsOfCalls,
    SightsOfReplies,
    SightsOfProxies,
)
"""All of them; `mqlab.explore.goals` has these and the goals of the rules by name."""

__all__ = ["SIGHTS", "Sight", "Sights", "seen"]
