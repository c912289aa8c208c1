"""Goals that no rule is about, by subject: what must be seen for the passes of many worlds to mean anything."""

from mqlab.explore.sights.filters import SightsOfFilters
from mqlab.explore.sights.groups import SightsOfGroups
from mqlab.explore.sights.offsets import SightsOfOffsets
from mqlab.explore.sights.pulling import SightsOfPulling
from mqlab.explore.sights.retries import SightsOfDelays, SightsOfRetries, SightsOfTimers
from mqlab.explore.sights.sending import SightsOfSending
from mqlab.explore.sights.sights import Sight, Sights, seen

SIGHTS: tuple[type[Sights], ...] = (
    SightsOfSending,
    SightsOfPulling,
    SightsOfFilters,
    SightsOfGroups,
    SightsOfOffsets,
    SightsOfRetries,
    SightsOfDelays,
    SightsOfTimers,
)
"""All of them; `mqlab.explore.goals` has these and the goals of the rules by name."""

__all__ = ["SIGHTS", "Sight", "Sights", "seen"]
