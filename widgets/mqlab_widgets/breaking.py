"""What a viewer breaks and mends, and what it lets happen next: the part of a session that acts on its world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mqlab.errors import LearnerError
from mqlab.sim import ROOM_BYTES
from mqlab_widgets.boards.stage_state import DOWN
from mqlab_widgets.verbs import (
    FAST_PPM,
    LINKS,
    MACHINES,
    SLOW_MS,
    Condition,
    LinkCondition,
    condition_now,
    condition_then,
    link_now,
    link_then,
)

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.sim import Pending
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.player import Player

LINK_REFUSALS = {
    "cut": ("the link between {} and {} is cut already", "heal it"),
    "heal": ("the link between {} and {} is not cut", "cut it first"),
    "slow": ("the link between {} and {} is slow already", "make it quick again"),
    "quick": ("the link between {} and {} is as quick as ever", "slow it down first"),
}


class Act(NamedTuple):
    """An action of the world's own vocabulary (`mqlab.sim.faults`), and what else it is told."""

    verb: str
    arguments: dict[str, Any] = {}  # noqa: RUF012  nobody changes it


def _refuse(verb: str, node: str, is_: Condition) -> NoReturn:
    """Nothing would happen, and nobody would see why."""
    match verb:
        case _ if is_.state == "":
            raise LearnerError(f"{node} was not there yet", "go on to where it has started")
        case "crash" | "freeze" | "thaw" if is_.state == DOWN:
            raise LearnerError(f"{node} is down already, so there is nothing to {verb}", "restart it first")
        case "power_off":
            raise LearnerError(f"{node} has no power already", "restart it first")
        case "thaw":
            raise LearnerError(f"{node} is not frozen", "freeze it first, or crash it")
        case "freeze":
            raise LearnerError(f"{node} is frozen already", "thaw it, or crash it")
        case "drift":
            raise LearnerError(f"the clock of {node} is wrong already", "set it right first")
        case "set_clock":
            raise LearnerError(f"the clock of {node} is right", "let it run wrong first")
    if not is_.stores:
        raise LearnerError(f"{node} is no broker, and what its disk does is seen nowhere", "choose a broker")
    told = {
        "fill_disk": "is full already", "free_disk": "is not full",
        "hang_disk": "hangs already", "unhang_disk": "does not hang",
    }  # fmt: skip
    raise LearnerError(f"the disk of {node} {told[verb]}", "its menu has what can be done to it")


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
    def over(self) -> bool:
        """Whether the world has gone on since what is shown, or something was done to it."""
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

    def do_take_back(self, what: str = "") -> None:
        """Play a new world up to the slice of the cursor."""
        raise NotImplementedError

    def stage(self) -> StageBoard:
        """The stage at the cursor."""
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

    def machine_verbs(self, *, then: bool = False) -> dict[str, str]:
        """What would do something to the chosen machine, in words: in the present, or (`then`) in a new world that goes
        on from what is shown.
        """
        if not self.chosen:
            return {}
        is_ = self._condition(self.chosen, then=then)
        return {name: verb.words.format(self.chosen) for name, verb in MACHINES.items() if verb.possible(is_)}

    def link_verbs(self, *, then: bool = False) -> dict[str, str]:
        """The same for the link between the two machines that were chosen last."""
        if not self.chosen or not self.other:
            return {}
        is_ = self._link_condition(self.other, self.chosen, then=then)
        ends = f"{self.other} - {self.chosen}"
        return {name: verb.words.format(ends) for name, verb in LINKS.items() if verb.possible(is_)}

    def _condition(self, node: str, *, then: bool) -> Condition:
        return condition_then(self.stage(), node) if then else condition_now(self.lab, node)

    def _link_condition(self, a: str, b: str, *, then: bool) -> LinkCondition:
        return link_then(self.stage(), a, b) if then else link_now(self.lab, a, b)

    def _faults_offered(self) -> set[str]:
        offered = {*self.machine_verbs(), *self.link_verbs()}
        if not self.past and not self.moving:
            offered |= {"pick", "hold"}
        return offered

    # -- machines ---------------------------------------------------------------------------------------------------

    def do_crash(self, node: str = "", where: str = "") -> None:
        """Kill the process. In the past `where` must say "new" (in a new world from here) or "now", for every verb."""
        self._machine("crash", node, where, Act("crash"))

    def do_power_off(self, node: str = "", where: str = "") -> None:
        """Pull the plug."""
        self._machine("power_off", node, where, Act("power_off"))

    def do_freeze(self, node: str = "", where: str = "") -> None:
        """Let the process hang."""
        self._machine("freeze", node, where, Act("freeze"))

    def do_thaw(self, node: str = "", where: str = "") -> None:
        """Let it go on."""
        self._machine("thaw", node, where, Act("thaw"))

    def do_restart(self, node: str = "", where: str = "") -> None:
        """Start the process again."""
        self._machine("restart", node, where, Act("restart"))

    def do_fill_disk(self, node: str = "", where: str = "") -> None:
        """Leave no room on its disk."""
        self._machine("fill_disk", node, where, Act("fill_disk"))

    def do_free_disk(self, node: str = "", where: str = "") -> None:
        """Make room there again."""
        self._machine("free_disk", node, where, Act("fill_disk", {"free_bytes": ROOM_BYTES}))

    def do_hang_disk(self, node: str = "", where: str = "") -> None:
        """Let its disk stop answering."""
        self._machine("hang_disk", node, where, Act("hang_disk"))

    def do_unhang_disk(self, node: str = "", where: str = "") -> None:
        """Let its disk answer again."""
        self._machine("unhang_disk", node, where, Act("unhang_disk"))

    def do_drift(self, node: str = "", where: str = "") -> None:
        """Let the clock on its wall run fast."""
        self._machine("drift", node, where, Act("drift", {"ppm": FAST_PPM}))

    def do_set_clock(self, node: str = "", where: str = "") -> None:
        """Set the clock on its wall right."""
        error_ms = round(self.lab.world.nodes[node or self.chosen].clock_error_us / 1_000) if node or self.chosen else 0
        self._machine("set_clock", node, where, Act("drift", {"ppm": 0, "jump_ms": -error_ms}))

    def _machine(self, verb: str, node: str, where: str, act: Act) -> None:
        node = node or self.chosen
        if not node:
            raise LearnerError("no machine is chosen", "click a machine on the stage")
        if node not in self.lab.world.nodes:
            raise LearnerError(f"there is no machine {node!r}", f"choose of {', '.join(self.lab.world.nodes)}")
        self._check_where(where)
        is_ = self._condition(node, then=where == "new")
        if not MACHINES[verb].possible(is_):
            _refuse(verb, node, is_)
        self._do(MACHINES[verb].words.format(node), where, [act._replace(arguments={"node": node, **act.arguments})])

    # -- links ------------------------------------------------------------------------------------------------------

    def do_cut(self, source: str = "", target: str = "", where: str = "") -> None:
        """Hold back everything between two machines, in both directions."""
        left, right = self._ends(source, target)
        self._link("cut", left, right, where, [Act("partition", {"left": left, "right": right})])

    def do_heal(self, source: str = "", target: str = "", where: str = "") -> None:
        """Let it through again."""
        left, right = self._ends(source, target)
        self._link("heal", left, right, where, [Act("unpartition", {"left": left, "right": right})])

    def do_slow(self, source: str = "", target: str = "", where: str = "") -> None:
        """Let frames take longer between two machines, in both directions."""
        self._delay("slow", source, target, where, SLOW_MS)

    def do_quick(self, source: str = "", target: str = "", where: str = "") -> None:
        """Let them be as quick as they were."""
        self._delay("quick", source, target, where, 0)

    def _delay(self, verb: str, source: str, target: str, where: str, ms: int) -> None:
        a, b = self._ends(source, target)
        acts = [Act("delay", {"source": one, "target": other, "ms": ms}) for one, other in ((a, b), (b, a))]
        self._link(verb, a, b, where, acts)

    def do_disconnect(self, source: str = "", target: str = "", where: str = "") -> None:
        """Break the connections between two machines."""
        a, b = self._ends(source, target)
        self._link("disconnect", a, b, where, [Act("disconnect", {"a": a, "b": b})])

    def _link(self, verb: str, a: str, b: str, where: str, acts: list[Act]) -> None:
        self._check_where(where)
        if not LINKS[verb].possible(self._link_condition(a, b, then=where == "new")):
            told, hint = LINK_REFUSALS[verb]
            raise LearnerError(told.format(a, b), hint)
        self._do(LINKS[verb].words.format(f"{a} - {b}"), where, acts)

    def _ends(self, source: str, target: str) -> tuple[str, str]:
        ends = (source or self.other, target or self.chosen)
        if not all(ends):
            raise LearnerError("a link needs two machines", "click a link, or one machine and then the other")
        for node in ends:
            if node not in self.lab.world.nodes:
                raise LearnerError(f"there is no machine {node!r}", f"choose of {', '.join(self.lab.world.nodes)}")
        return ends

    # -- when -------------------------------------------------------------------------------------------------------

    def _check_where(self, where: str) -> None:
        """What is over cannot be changed; who acts there must have said what is meant, before anything is done."""
        if where not in ("", "new", "now"):
            raise LearnerError(f"there is no {where!r} to do it in", 'write where="new" or where="now"')
        if self.over and not where:
            raise LearnerError(
                "what is shown is past, and nothing was done",
                "choose to do it in a new world from here, or now, in the present",
            )

    def _do(self, words: str, where: str, acts: list[Act]) -> None:
        if where:
            self.player.pause()
        if where == "new":
            what = f"{words[0].lower()}{words[1:]}"
            self.do_take_back(what)
            self.said = f"This is a new world, which has gone on from there: {what}. The other one stands under Worlds."
        if not self.playing:
            self.do_now()
        for act in acts:
            self.lab.act(act.verb, **act.arguments)

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
