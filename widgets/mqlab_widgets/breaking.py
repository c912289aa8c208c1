"""What a viewer breaks and mends, and what it lets happen next: the part of a session that acts on its world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.sim import Pending
    from mqlab_widgets.player import Player

BREAKABLE = ("crash", "power_off", "freeze", "thaw", "restart")
LINKS = ("cut", "heal", "disconnect")
MACHINES = {
    "crash": ("running", "frozen"),
    "power_off": ("running", "frozen", "down"),
    "freeze": ("running",),
    "thaw": ("frozen",),
    "restart": ("down", "frozen", "running"),
}
"""What is done to a machine -> the states in which it can be done."""


class Breaking:
    """The part of a session that breaks, mends, and chooses what happens next."""

    player: Player
    chosen: str
    other: str
    said: str

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        raise NotImplementedError

    @property
    def past(self) -> bool:
        """Whether what is shown is over."""
        raise NotImplementedError

    @property
    def playing(self) -> bool:
        """Whether the world passes."""
        raise NotImplementedError

    @property
    def moving(self) -> bool:
        """Whether time passes in the world at this moment."""
        raise NotImplementedError

    def do_now(self) -> None:
        """To the newest event."""
        raise NotImplementedError

    # -- whom -------------------------------------------------------------------------------------------------------

    def do_choose(self, node: str) -> None:
        """The machine that the controls act on; the one before it stays as the other end of a link."""
        if node not in self.lab.world.nodes:
            raise LearnerError(f"there is no machine {node!r}", f"choose one of {', '.join(self.lab.world.nodes)}")
        if node != self.chosen:
            self.other, self.chosen = self.chosen, node

    def do_choose_link(self, source: str, target: str) -> None:
        """The link between two machines."""
        self.do_choose(source)
        self.do_choose(target)

    def state_of(self, node: str) -> str:
        """ "running", "frozen" or "down"."""
        if node in self.lab.processes:
            return self.lab.processes[node].state
        return "down" if self.lab.world.nodes[node].life.over else "running"

    def _is_cut(self, a: str, b: str) -> bool:
        network = self.lab.world.network
        return network.link(a, b).cut or network.link(b, a).cut

    def _faults_offered(self) -> set[str]:
        offered: set[str] = set()
        if self.chosen:
            state = self.state_of(self.chosen)
            offered |= {verb for verb, states in MACHINES.items() if state in states}
            if not self.lab.world.nodes[self.chosen].powered:
                offered.discard("power_off")
        if self.chosen and self.other:
            offered |= {"heal" if self._is_cut(self.chosen, self.other) else "cut", "disconnect"}
        if not self.past and not self.moving:
            offered |= {"pick", "hold"}
        return offered

    # -- machines ---------------------------------------------------------------------------------------------------

    def do_crash(self, node: str = "") -> None:
        """Kill the process."""
        self._machine("crash", node)

    def do_power_off(self, node: str = "") -> None:
        """Pull the plug."""
        self._machine("power_off", node)

    def do_freeze(self, node: str = "") -> None:
        """Let the process hang."""
        self._machine("freeze", node)

    def do_thaw(self, node: str = "") -> None:
        """Let it go on."""
        self._machine("thaw", node)

    def do_restart(self, node: str = "") -> None:
        """Start the process again."""
        self._machine("restart", node)

    def _machine(self, verb: str, node: str) -> None:
        node = node or self.chosen
        if not node:
            raise LearnerError("no machine is chosen", "click a machine on the stage")
        if node in self.lab.world.nodes and self.state_of(node) not in MACHINES[verb]:
            self._refuse(verb, node)
        self._fault(verb, node=node)

    def _refuse(self, verb: str, node: str) -> NoReturn:
        """Nothing would happen, and nobody would see why."""
        state = self.state_of(node)
        if state == "down":
            raise LearnerError(f"{node} is down already, so there is nothing to {verb}", "restart it first")
        if verb == "thaw":
            raise LearnerError(f"{node} is not frozen", "freeze it first, or crash it")
        raise LearnerError(f"{node} is frozen already", "thaw it, or crash it")

    # -- links ------------------------------------------------------------------------------------------------------

    def do_cut(self, source: str = "", target: str = "") -> None:
        """Hold back everything between two machines, in both directions."""
        left, right = self._ends(source, target)
        if self._is_cut(left, right):
            raise LearnerError(f"the link between {left} and {right} is cut already", "heal it")
        self._fault("partition", left=left, right=right)

    def do_heal(self, source: str = "", target: str = "") -> None:
        """Let it through again."""
        left, right = self._ends(source, target)
        if not self._is_cut(left, right):
            raise LearnerError(f"the link between {left} and {right} is not cut", "cut it first")
        self._fault("unpartition", left=left, right=right)

    def do_disconnect(self, source: str = "", target: str = "") -> None:
        """Break the connections between two machines."""
        a, b = self._ends(source, target)
        self._fault("disconnect", a=a, b=b)

    def _ends(self, source: str, target: str) -> tuple[str, str]:
        ends = (source or self.other, target or self.chosen)
        if not all(ends):
            raise LearnerError("a link needs two machines", "click a link, or one machine and then the other")
        for node in ends:
            if node not in self.lab.world.nodes:
                raise LearnerError(f"there is no machine {node!r}", f"choose of {', '.join(self.lab.world.nodes)}")
        return ends

    def _fault(self, verb: str, **arguments: Any) -> None:
        past = self.past
        if not self.playing:
            self.do_now()
        self.lab.act(verb, **arguments)
        if past:
            self.said = "This happened in the present. To change the past, play a new world up to there first."

    # -- choosing what happens next ---------------------------------------------------------------------------------

    def pending(self) -> dict[str, Pending]:
        """What may happen next, by keys that hold as long as the entry is there."""
        pending: dict[str, Pending] = {}
        for entry in self.lab.world.pending():
            same = sum(other.startswith(f"{entry.key}#") for other in pending)
            pending[f"{entry.key}#{same}"] = entry
        return pending

    def pending_groups(self) -> tuple[dict[str, Pending], dict[str, Pending]]:
        """What may happen next: the deliveries, and the housekeeping of the machines (their threads and timers)."""
        pending = self.pending()
        deliveries = {key: entry for key, entry in pending.items() if entry.source}
        return deliveries, {key: entry for key, entry in pending.items() if key not in deliveries}

    def _place_of(self, key: str) -> int:
        """Where the entry stands among the world's pending ones now; LearnerError if it has gone."""
        if self.past:
            raise LearnerError(
                "what is shown is the past, where all has happened",
                "go to the present, or play a new world up to here",
            )
        keys = list(self.pending())
        if key not in keys:
            raise LearnerError(
                "what was clicked has happened meanwhile, or cannot happen any more", "choose again from the new list"
            )
        return keys.index(key)

    def do_pick(self, entry: str) -> None:
        """Let one of the pending entries happen now."""
        self.lab.act("pick", index=self._place_of(entry))
        with self.player.stepping():
            self.lab.step()

    def do_hold(self, entry: str, ms: float | str = 100) -> None:
        """Hold one of the pending entries back for some ms."""
        self.lab.act("hold", index=self._place_of(entry), ms=float(ms))
