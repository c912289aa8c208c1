"""What one call of `mqlab grade` is about: what was handed in, and all that a teacher has said, now and before.

Everything is read and checked before anything is written.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.grading.again import asked_again, keep_again, with_again
from mqlab.grading.arrivals import Said, Seen, look, note_platform, platform_says, read_arrivals
from mqlab.grading.by_hand import read_by_hand
from mqlab.grading.confine import Limits
from mqlab.grading.course import HandedIn, LeftOut, Settings, handed_in, nothing_in, number_of, sources_in
from mqlab.grading.deadlines import (
    Deadline,
    Deadlines,
    Number,
    factor_of,
    given_deadlines,
    keep_deadlines,
    kept_deadlines,
    with_given,
)
from mqlab.grading.judging import checks_in
from mqlab.grading.marking import digest_of, read_key, read_result
from mqlab.grading.pseudonyms import Names, give_names_back, keep_names, names_of, real_members, refuse_names
from mqlab.grading.roster import Member, keep_roster, members_in
from mqlab.grading.settling import Settling
from mqlab.grading.times import now, shown, zone_of
from mqlab.labs.build import read_lab


@dataclass(slots=True)
class ClassRules:
    """A class, ready to be marked."""

    submissions: Path
    settings: Settings
    settling: Settling
    work: Sequence[HandedIn]
    left: Sequence[LeftOut]
    members: Sequence[Member]
    """Who is on the roster that was given now."""
    known: Sequence[Member]
    """Who is on that, or else on the one that was kept."""
    asked_again: Sequence[str]
    said: Sequence[Said] | None
    """The learning platform's list; None when it was not given."""

    @property
    def students(self) -> list[str]:
        """The roster that was given, as its names are shown."""
        return sorted(map(self.settings.names.shown, (member.id for member in self.members)))

    def keep(self) -> Iterator[str]:
        """Write beside the marks what was said, and what is there to be marked; lines that tell what holds."""
        marks, names = self.settings.out, self.settings.names
        marks.mkdir(parents=True, exist_ok=True)
        owners = {each.student: None for each in self.work}
        if names.hidden:
            keep_names(marks, names, self.known, owners)
        else:
            give_names_back(marks, self.settling.key, owners)
            if self.members:
                keep_roster(self.members, marks)
        deadlines = self.settling.deadlines
        keep_deadlines(deadlines, marks)
        keep_again(marks, self.settings.again)
        labs = sorted({each.source.stem for each in self.work})
        numbers = [lab[:2] for lab in labs]
        there = [seen(each) for each in self.work]
        look(marks, self.settling.arrivals, there, numbers, names, now())
        if self.said is not None:
            yield from note_platform(marks, self.settling.arrivals, there, self.said, names)
        for lab in labs:
            if lab[:2] in deadlines.of_labs:
                yield f"{lab}: due {shown(deadlines.of_labs[lab[:2]].due)}"

    def settle_others(self) -> None:
        """Take up what is said now in the results of labs that are not marked now."""
        own = {self.settings.place_of(each) for each in self.work}
        for path in sorted(self.settings.out.glob("*/*/result.json")):
            result = read_result(path.parent)
            if path.parent not in own and result is not None:
                self.settling.kept(result, path.parent)


def seen(each: HandedIn) -> Seen:
    """What the log of arrivals keeps of a notebook."""
    return Seen(each.student, each.source.stem[:2], digest_of(each.notebook))


def rules_of(options: Namespace, told: Callable[[str], None]) -> ClassRules:
    """All that the options and the directory of the marks say. `told` gets a line for each file that is left out.

    LearnerError for what can't be used; nothing has been written then.
    """
    key, out = read_key(str(options.key)), options.out
    members = members_in(options.students) if options.students else []
    if options.anonymous:
        refuse_names(out)
    known = members or real_members(out)
    number = partial(number_of, sources=sources_in(options.root / "labs" / "sources"))
    again = [_again(each, options.root / "labs" / "sources", number) for each in options.again]
    settings = Settings(
        options.key, out, options.root / "labs" / "sources", _labs(options.lab, again, number), options.hidden,
        not options.no_run, options.jobs,
        Limits(wall_s=options.wall, memory_bytes=int(options.memory * 2**30), confined=not options.unconfined),
        options.exam, names_of(known, key) if options.anonymous else Names(), with_again(asked_again(out), again),
    )  # fmt: skip
    work, left = handed_in(options.submissions, settings)
    for each in left:
        told(f"left out: {each}")
    if not work:
        raise nothing_in(options.submissions)
    deadlines = _deadlines(options, known, [each.source.stem[:2] for each in work], number)
    said = None
    if options.arrivals:
        labs = {each.source.stem[:2] for each in work}
        only = labs.pop() if len(labs) == 1 else ""
        owners = [each.student for each in work]
        said = platform_says(options.arrivals, known, owners, number, only, deadlines.zone)
    by_shown = {settings.names.shown(member.id).lower(): member for member in known}
    settling = Settling(key, deadlines, read_arrivals(out, key), read_by_hand(out, key), settings.names, by_shown)
    return ClassRules(options.submissions, settings, settling, work, left, members, known, again, said)


def _again(what: str, sources: Path, number: Number) -> str:
    """A lab's number, or a check's name. LearnerError when there is none."""
    lab, _, check = what.partition("/")
    of_lab = number(lab)
    if not check:
        return of_lab
    (source,) = sources.glob(f"{of_lab}_*.py")
    names = [name for name, _ in checks_in(read_lab(source))]
    if what not in names:
        raise LearnerError(f"there is no check {what!r}", f"checks that there are: {', '.join(names)}")
    return what


def _labs(asked: Sequence[str], again: Sequence[str], number: Number) -> tuple[str, ...]:
    """The labs that are marked: with --again only those that are marked again."""
    if not again:
        return tuple(asked)
    labs = tuple(dict.fromkeys(name[:2] for name in again))
    if asked and not {number(lab) for lab in asked}.issuperset(labs):
        raise LearnerError("--again names a lab that --lab does not", "leave --lab out: --again says which labs")
    return labs


def _deadlines(options: Namespace, known: Sequence[Member], labs: Sequence[str], number: Number) -> Deadlines:
    """What was kept and what is said now."""
    kept = kept_deadlines(options.out)
    zone = kept.zone if options.zone is None else options.zone
    if zone:
        zone_of(zone)
    given: Mapping[str, Deadline | None] = {}
    if options.due is not None:
        asked = [number(lab) for lab in options.lab] or labs
        given = given_deadlines(options.due, options.begin, zone, asked, number)
    elif options.begin:
        raise LearnerError("--begin says when the time began that --due ends", "give --due, too")
    deadlines = with_given(
        kept, given, percent=options.late, floor=options.late_floor, grace_min=options.grace, zone=options.zone
    )
    if (options.late or options.grace) and not deadlines.of_labs:
        raise LearnerError("nothing can be late without a deadline", "give --due, too")
    deadlines.check_members(known, number)
    if options.exam:
        _check_factors(deadlines, known, labs)
    return deadlines


def _check_factors(deadlines: Deadlines, known: Sequence[Member], labs: Sequence[str]) -> None:
    """An exam's time can only be multiplied where it is said when it began."""
    longer = [member.id for member in known if factor_of(member) != 1]
    if longer and any(lab in deadlines.of_labs and deadlines.of_labs[lab].begin is None for lab in labs):
        raise LearnerError(
            f"{', '.join(longer)} has a time_factor, and nobody says when the exam began",
            "give --begin WHEN together with --due",
        )
