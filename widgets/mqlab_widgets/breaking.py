"""What a viewer breaks and mends on the stage: which verbs would do something, and doing them, now or in a new
world.
"""

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
    from mqlab_widgets.session import Session


def state_of(lab: Lab, node: str) -> str:
    """ "running", "frozen" or "down"."""
    if node in lab.processes:
        return lab.processes[node].state
    return "down" if lab.world.nodes[node].life.over else "running"


def check_machine(lab: Lab, node: str) -> None:
    """LearnerError unless there is such a machine."""
    if node not in lab.world.nodes:
        raise LearnerError(f"there is no machine {node!r}", f"choose one of {', '.join(lab.world.nodes)}")


def machine_verbs(session: Session, *, then: bool = False) -> dict[str, str]:
    """What would do something to the chosen machine, in words: in the present, or (`then`) in a new world that goes
    on from what is shown.
    """
    if not session.page.chosen:
        return {}
    is_ = _condition(session, session.page.chosen, then=then)
    return {name: verb.words.format(session.page.chosen) for name, verb in MACHINES.items() if verb.possible(is_)}


def link_verbs(session: Session, *, then: bool = False) -> dict[str, str]:
    """The same for the link between the two machines that were chosen last."""
    if not session.page.chosen or not session.page.other:
        return {}
    is_ = _link_condition(session, session.page.other, session.page.chosen, then=then)
    ends = f"{session.page.other} - {session.page.chosen}"
    return {name: verb.words.format(ends) for name, verb in LINKS.items() if verb.possible(is_)}


def _condition(session: Session, node: str, *, then: bool) -> Condition:
    return condition_then(session.cursor.stage(), node) if then else condition_now(session.lab, node)


def _link_condition(session: Session, a: str, b: str, *, then: bool) -> LinkCondition:
    return link_then(session.cursor.stage(), a, b) if then else link_now(session.lab, a, b)


def act_on_machine(name: str, session: Session, node: str = "", where: str = "") -> None:
    """Do a verb of MACHINES. In the past `where` must say "new" (in a new world from here) or "now"."""
    verb, node = MACHINES[name], node or session.page.chosen
    if not node:
        raise LearnerError("no machine is chosen", "click a machine on the stage")
    check_machine(session.lab, node)
    _check_where(session, where)
    is_ = _condition(session, node, then=where == "new")
    if not verb.possible(is_):
        refuse(name, node, is_)
    _do(session, verb.words.format(node), where, [verb.act(session.lab, node)])


def act_on_link(name: str, session: Session, source: str = "", target: str = "", where: str = "") -> None:
    """Do a verb of LINKS, in both directions."""
    verb, (a, b) = LINKS[name], _ends(session, source, target)
    _check_where(session, where)
    if not verb.possible(_link_condition(session, a, b, then=where == "new")):
        raise LearnerError(verb.refusal.told.format(a, b), verb.refusal.hint)
    _do(session, verb.words.format(f"{a} - {b}"), where, verb.acts(a, b))


def _ends(session: Session, source: str, target: str) -> tuple[str, str]:
    ends = (source or session.page.other, target or session.page.chosen)
    if not all(ends):
        raise LearnerError("a link needs two machines", "click a link, or one machine and then the other")
    for node in ends:
        check_machine(session.lab, node)
    return ends


def _check_where(session: Session, where: str) -> None:
    """What is over cannot be changed; who acts there must have said what is meant, before anything is done."""
    if where not in ("", "new", "now"):
        raise LearnerError(f"there is no {where!r} to do it in", 'write where="new" or where="now"')
    if session.cursor.over and not where:
        raise LearnerError(
            "what is shown is past, and nothing was done",
            "choose to do it in a new world from here, or now, in the present",
        )


def _do(session: Session, words: str, where: str, acts: list[Act]) -> None:
    if where:
        session.player.pause()
    if where == "new":
        what = f"{words[0].lower()}{words[1:]}"
        session.worlds.take_back(session.cursor, what)
        session.show_world()
        session.said = f"This is a new world, which has gone on from there: {what}. The other one stands under Worlds."
    if not session.playing:
        session.move_to(len(session.lab.history))
    for act in acts:
        session.lab.act(act.verb, **act.arguments)
