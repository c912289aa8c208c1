"""`python -m mqlab.labs build|check|truths|new`: the labs' notebooks from their text sources."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.labs.build import build, read_lab, save
from mqlab.labs.project import Project
from mqlab.labs.skeleton import write_skeleton
from mqlab.labs.stale_notebooks import orphans, require_fresh, require_same_outputs
from mqlab.labs.truths import student_ids, truths_of
from mqlab.progress import bar, counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when all went well, 1 with a message on stderr when not."""
    options = _parser().parse_args(arguments)
    project = Project(options.root.resolve())
    try:
        if options.command == "new":
            return _new(options.name, project)
        if options.command == "check":
            return _check(options.lab, project, execute=options.execute)
        if options.command == "truths":
            return _truths(options.lab, project, options.ids)
        return _build(options.lab, project)
    except LearnerError as wrong:
        print(wrong, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mqlab.labs", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the clone's root (default: here)")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build the notebooks of all labs, or of those named")
    checking = commands.add_parser("check", help="say which built notebooks no longer fit their sources")
    asking = commands.add_parser("truths", help="say which bets have the same answer for all students")
    asking.add_argument("--ids", type=int, default=8, metavar="N", help="how many students (default 8)")
    for command in (building, checking, asking):
        command.add_argument("lab", nargs="*", help="a lab's number or name; all when none is given")
    checking.add_argument("--execute", action="store_true", help="execute the labs again and compare the outputs too")
    new = commands.add_parser("new", help="begin a lab: a source, a check and wrong solutions that pass")
    new.add_argument("name", help="NN_name, for example 02_store")
    return parser


def _build(wanted: Sequence[str], project: Project) -> int:
    def one(path: Path) -> str:
        save(build(read_lab(path), project.labs), project)
        return f"built labs/{path.stem}.ipynb and out/solutions/{path.stem}.ipynb"

    return _each(project.select(wanted), one)


def _check(wanted: Sequence[str], project: Project, *, execute: bool) -> int:
    def one(path: Path) -> str:
        lab = read_lab(path)
        require_fresh(lab, project)
        if execute:
            require_same_outputs(lab, project)
        return f"labs/{path.stem}.ipynb fits its source"

    failed = _each(project.select(wanted), one)
    for path in [] if wanted else orphans(project):
        print(f"labs/{path.name} has no source\n  What to do: git rm labs/{path.name}", file=sys.stderr)
        failed = 1
    return failed


def _truths(wanted: Sequence[str], project: Project, count: int) -> int:
    same = asked = 0
    contradicted = []
    labs = project.select(wanted)
    for path in counted("labs", labs, len(labs)):
        bets = truths_of(read_lab(path), student_ids(count))
        print(f"{path.stem}: {sum(bet.same_for_all for bet in bets)} of {len(bets)} bets are the same for {count} ids")
        for bet in bets:
            print(f"  {'same ' if bet.same_for_all else '     '} {bet}", flush=True)
            if bet.contradicts:
                contradicted.append(f"{path.stem}: {bet.name} gives one reason for different answers; choose it too")
        same, asked = same + sum(bet.same_for_all for bet in bets), asked + len(bets)
    print(f"in all {same} of {asked} bets are the same for {count} ids")
    print("\n".join(contradicted), file=sys.stderr, end="\n" if contradicted else "")
    return bool(contradicted)


def _each(paths: Sequence[Path], work: Callable[[Path], str]) -> int:
    """Do the work for every lab and print what it says, so that one run names everything that is wrong."""
    failed = 0
    with bar("labs", len(paths)) as shown:
        for done, path in enumerate(paths):
            shown.to(done, path.stem)
            try:
                said, place = work(path), sys.stdout
            except LearnerError as wrong:
                said, place = str(wrong), sys.stderr
                failed = 1
            with shown.aside():
                print(said, file=place, flush=True)
    return failed


def _new(name: str, project: Project) -> int:
    for path in write_skeleton(name, project):
        print(f"wrote {path.relative_to(project.root)}")
    print(f"next: python -m mqlab.labs build {name[:2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
