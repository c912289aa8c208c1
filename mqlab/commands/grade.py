"""`mqlab grade`: marks a class."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqlab.commands.grade_options import parser_of_grade
from mqlab.fast.choice import take_sources
from mqlab.progress import bar

if TYPE_CHECKING:
    from mqlab.grading.class_rules import ClassRules

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells give it."""
NOT_ON_ROSTER = "this id is not on the roster"

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Mark what was handed in; 0 when all of it could be marked, 1 when the marker failed with something.

    After Ctrl-C it says how to go on, and returns 130.
    LearnerError when there is nothing to mark, and for a key, a roster, times or marks of before that can't be used.
    """
    options = parser_of_grade().parse_args(argv)
    take_sources()
    from mqlab.grading.class_rules import rules_of
    from mqlab.grading.confine import see_to_confinement

    rules = rules_of(options, told=print)
    if options.unconfined:
        print("not confined, as you have said: code of students can read, change and remove what you can")
    else:
        see_to_confinement()
    for line in rules.keep():
        print(line)
    results = _marked(rules)
    if results is None:
        return INTERRUPTED
    every = _with_all_others(rules, results)
    _write_gradebook(rules, every)
    return _told(rules, results)


def _marked(rules: ClassRules) -> list[Result] | None:
    """The results of what was handed in, in its order; None when it was interrupted."""
    from mqlab.grading.course import HandedIn, mark_all
    from mqlab.grading.printable import printable

    done, work = 0, rules.work
    with bar("notebooks", len(work)) as shown:

        def told(each: HandedIn, result: Result, known: bool) -> Result:
            nonlocal done
            done += 1
            settled = rules.settling.kept(result, rules.settings.place_of(each))
            student = printable(rules.settings.names.shown(each.student))
            with shown.aside():
                print(f"{student:<20} {each.source.stem:<20} "
                      f"{settled['points']:>6g} of {settled['most']}"
                      f"{'  (was marked already)' if known else ''}", flush=True)  # fmt: skip
            shown.to(done, f"{student} {each.source.stem}")
            return settled

        try:
            return mark_all(work, rules.settings, told)
        except KeyboardInterrupt:
            again = " without --again" if rules.asked_again else ""
            goes_on = f"the same command{again} goes on from there"
            print(f"\nstopped: {done} of {len(work)} are marked; {goes_on}", file=sys.stderr)
            return None


def _with_all_others(rules: ClassRules, results: list[Result]) -> list[Result]:
    """Besides: who has handed in nothing, and the labs that were marked before."""
    from mqlab.grading.course import missing, strangers
    from mqlab.grading.other_labs import results_of_other_labs
    from mqlab.grading.printable import printable
    from mqlab.grading.roster import kept_roster

    absent = missing(results, rules.students, rules.left)
    for result in absent:
        student, why = printable(result["student"]), printable(result["unreadable"])
        print(f"{student:<20} {result['lab']:<20} {why}")
    for student in strangers(results, rules.students):
        other = "if it is somebody's id in other words, rename the directory"
        print(f"{printable(student)}: is not on the roster; {other}")
    rules.settle_others()
    out = rules.settings.out
    others = results_of_other_labs(rules.submissions, rules.settings, rules.work, kept_roster(out))
    # Who has handed in nothing may have a mark by hand.
    return [*results, *(rules.settling.settled(each) for each in [*absent, *others])]


def _write_gradebook(rules: ClassRules, every: list[Result]) -> None:
    from mqlab.grading.course import strangers
    from mqlab.grading.gradebook import write_gradebook
    from mqlab.grading.roster import kept_members

    unknown = strangers(every, rules.students)
    rows = [
        {**result, "remarks": [*result["remarks"], NOT_ON_ROSTER]} if result["student"] in unknown else result
        for result in every
    ]
    ordered = sorted(rows, key=lambda each: (each["student"].lower(), each["lab"]))
    write_gradebook(ordered, rules.settings.out, kept_members(rules.settings.out))


def _told(rules: ClassRules, results: list[Result]) -> int:
    """Say what came of it; the exit status."""
    from mqlab.grading.printable import printable

    failed = [result for result in results if result.get("failed")]
    for result in failed:
        print(printable(f"{result['student']} {result['lab']}: {result['unreadable']}"))
    besides = f", {len(rules.left)} left out (named at the beginning)" if rules.left else ""
    besides += f", {len(failed)} not, since the marker failed" if failed else ""
    print(f"{len(results) - len(failed)} notebooks marked{besides}; {rules.settings.out / 'gradebook.csv'}")
    return 1 if failed else 0
