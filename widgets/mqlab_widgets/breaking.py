"""What a viewer breaks and mends, and what it lets happen next: the part of a session that acts on its world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import LearnerError
from mqlab_widgets.verbs import (
    LINKS,
    MACHINES,
    Act,
    Condition,
    LinkCondition,
    condition_now,
    condition_then,
    link_now,
    link_then,
    refuse,
)

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.sim import Pending
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.player import Player

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
        self._check_machine(node)
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

    # -- what is done -----------------------------------------------------------------------------------------------

    def _machine(self, name: str, node: str = "", where: str = "") -> None:
        """Do a verb of MACHINES. In the past `where` must say "new" (in a new world from here) or "now"."""
        verb, node = MACHINES[name], node or self.chosen
        if not node:
            raise LearnerError("no machine is chosen", "click a machine on the stage")
        self._check_machine(node)
        self._check_where(where)
        is_ = self._condition(node, then=where == "new")
        if not verb.possible(is_):
            refuse(name, node, is_)
        self._do(verb.words.format(node), where, [verb.act(self.lab, node)])

    def _link(self, name: str, source: str = "", target: str = "", where: str = "") -> None:
        """Do a verb of LINKS, in both directions."""
        verb, (a, b) = LINKS[name], self._ends(source, target)
        self._check_where(where)
        if not verb.possible(self._link_condition(a, b, then=where == "new")):
            raise LearnerError(verb.refusal.told.format(a, b), verb.refusal.hint)
        self._do(verb.words.format(f"{a} - {b}"), where, verb.acts(a, b))

    def _check_machine(self, node: str) -> None:
        if node not in self.lab.world.nodes:
            raise LearnerError(f"there is no machine {node!r}", f"choose one of {', '.join(self.lab.world.nodes)}")

    def _ends(self, source: str, target: str) -> tuple[str, str]:
        ends = (source or self.other, target or self.chosen)
        if not all(ends):
            raise LearnerError("a link needs two machines", "click a link, or one machine and then the other")
        for node in ends:
            self._check_machine(node)
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
