"""`mqlab serve`: a name server and brokers at real ports, for RocketMQ clients in any language.

When connections are taken it prints one line of JSON: what to connect to. Ctrl-C (or a SIGTERM) ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mqlab.arguments import named_values, seed_of
from mqlab.commands.numbers import whole
from mqlab.errors import LearnerError, MissingExtraError
from mqlab.lab import Lab
from mqlab.scenarios import get
from mqlab.scenarios.served import add_acl, add_proxies, add_topics, broker_settings
from mqlab.serving.serving import HA
from mqlab.serving.tls import MODES, PERMISSIVE

if TYPE_CHECKING:
    from mqlab.serving import Serving

OTHER_FILES = 500
"""Files that are open beside connections."""

PROXY_PORT = 8_081

OF_THE_SERVED_WORLD = ("acl", "set", "brokers", "slaves", "proxies", "topic", "sync_flush")
"""Options that say what is in the world, where no scenario says it."""

BROKER_PORT, PORTS_APART = 10_911, 10
"""Where the first broker is unless told otherwise, and how far the next one is from it. Its slaves come to the port
behind.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal ends it; 0. LearnerError where a port, a directory or a scenario is not to be had."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(arguments)
    if options.watch:
        return _watch(arguments, options)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve(options)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _serve(options: argparse.Namespace) -> None:
    lab, serving = _open(options)
    with serving:
        try:
            serving.wait()
        except KeyboardInterrupt:
            serving.close()
        finally:
            if options.record:
                serving.report(options.record)
                print(f"the session is in {options.record}: mqlab replay {options.record}", flush=True)
    if options.store:
        for process in lab.brokers:
            if process.controller is not None:
                # What a broker writes now and then only, such as consumers' offsets, shall be in its files.
                lab.run(process.controller.shutdown())


def opened(arguments: Sequence[str]) -> tuple[Lab, Serving]:
    """What these options of the command line ask for: a world, and its serving, which is open and has been told."""
    return _open(_parser().parse_args(arguments))


def _open(options: argparse.Namespace) -> tuple[Lab, Serving]:
    began_s = time.perf_counter()
    _check_scenario(options)
    if options.proxies is None:
        options.proxies = _proxies_there_can_be(options.scenario)
    _make_room(options.most_connections)
    lab = _directory_world(options) if options.store else _scenario_world(options)
    serving = lab.serve(
        host=options.host,
        ports=_ports(lab, options),
        advertise=_advertised(options.advertise),
        reach=options.reach,
        most_connections=options.most_connections,
        tls=options.tls,
        tls_certificate=options.tls_certificate,
        tls_key=options.tls_key,
    )
    _tell(serving, time.perf_counter() - began_s, options.ready_file)
    return lab, serving


WATCH_CELL = """\
from mqlab.commands.serve import opened
from mqlab_widgets import Stepper

lab, serving = opened({arguments!r})
Stepper(lab, play=True)"""


def _watch(arguments: list[str], options: argparse.Namespace) -> int:
    """The same in a notebook of JupyterLab, with the stage; it prints where both are."""
    from mqlab.commands.demo import show

    if options.record:
        raise LearnerError(
            "a session that is watched is recorded from its notebook", 'write serving.report("session.mqlab") in a cell'
        )
    with TemporaryDirectory(prefix="mqlab-serve-") as directory:
        ready_file = Path(options.ready_file or Path(directory) / "ready").absolute()
        ready_file.unlink(missing_ok=True)

        def told(url: str) -> None:
            if ready_file.is_file():
                print(ready_file.read_text(encoding="utf-8"), end="")
                print(f"the stage is at {url}", flush=True)
            else:
                print(f"the world is not served; the notebook says why: {url}", file=sys.stderr, flush=True)

        show(
            WATCH_CELL.format(arguments=[*arguments, "--ready-file", str(ready_file)]),
            told, options.no_browser, options.jupyter,
        )  # fmt: skip
    return 0


def _make_room(connections: int) -> None:
    """Let this process have as many open files as that takes, if it may: three for a connection of a 5.x client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * connections + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _proxies_there_can_be(scenario: str | None) -> int:
    """One, or none without grpcio, which is said."""
    if find_spec("grpc") is not None:
        return 1
    if scenario is None:
        missing = MissingExtraError("grpcio", "serve")
        print(f"mqlab serve: no proxy for clients of 5.x, since {missing}", file=sys.stderr)
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab serve", description=__doc__)
    parser.add_argument("--brokers", type=whole(1, 20), default=1, help="how many masters (default 1)")
    parser.add_argument("--slaves", type=whole(0, 5), default=0, help="how many slaves each has (default 0)")
    parser.add_argument(
        "--proxies", type=whole(0, 5),
        help="how many proxies, for clients of 5.x over gRPC (default 1; 0 where the package grpcio is missing)",
    )  # fmt: skip
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME[=TYPE]",
        help="make a topic; TYPE is NORMAL, FIFO, DELAY, TRANSACTION or MIXED (clients of 4.x make theirs by sending)",
    )  # fmt: skip
    parser.add_argument("--sync-flush", action="store_true", help="answer a sender when its message is on disk")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the brokers, as in RocketMQ's broker.conf: enablePropertyFilter=true",
    )  # fmt: skip
    parser.add_argument(
        "--acl", metavar="FILE",
        help="ask for signatures, and let the users of this file do what its rules allow (JSON; see docs/serving.md)",
    )  # fmt: skip
    parser.add_argument("--scenario", help="serve this world instead, one of `mqlab scenarios`")
    parser.add_argument(
        "-p", "--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter of that scenario"
    )
    parser.add_argument("--seed", default="0", help="the world's seed (default 0)")
    parser.add_argument("--store", metavar="DIR", help="keep the brokers' files there, and go on with what is there")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default 127.0.0.1: this machine)")
    parser.add_argument(
        "--port", type=whole(0, 65_535), default=9876, help="the name server's port (default 9876; 0: any free one)"
    )
    parser.add_argument(
        "--broker-port", type=whole(0, 65_535), metavar="PORT",
        help=f"the first broker's port (default {BROKER_PORT}, the next {PORTS_APART} higher; 0: any free ones)",
    )  # fmt: skip
    parser.add_argument(
        "--proxy-port", type=whole(0, 65_535), metavar="PORT",
        help=f"the first proxy's port (default {PROXY_PORT}, the next 1 higher; 0: any free ones)",
    )  # fmt: skip
    parser.add_argument(
        "--advertise", action="append", default=[], metavar="HOST",
        help="the host that clients are told to find brokers at (default: the one that they have used); or for one "
        "process its whole address, such as broker-a=example.org:30911",
    )  # fmt: skip
    parser.add_argument(
        "--reach", action="append", default=[], metavar="HOST[:PORT]",
        help="let processes of the world connect to that address outside, as a slave to a real master (default: none)",
    )  # fmt: skip
    parser.add_argument("--most-connections", type=whole(1), default=2_000, help="who comes then is turned away")
    parser.add_argument(
        "--tls", choices=MODES, default=PERMISSIVE,
        help="whether clients may (permissive, the default), must (enforcing) or must not (disabled) speak TLS",
    )  # fmt: skip
    parser.add_argument(
        "--tls-certificate", metavar="FILE",
        help="the certificate for TLS, in PEM, with its chain (default: one that is made at the first need)",
    )  # fmt: skip
    parser.add_argument("--tls-key", metavar="FILE", help="its private key, in PEM")
    parser.add_argument("--record", metavar="FILE", help="at the end write the session to FILE, for `mqlab replay`")
    parser.add_argument("--watch", action="store_true", help="open the stage beside it, in JupyterLab")
    parser.add_argument("--no-browser", action="store_true", help="with --watch: only print the address")
    parser.add_argument(
        "--jupyter", action="append", default=[], metavar="OPTION", help="with --watch: an option for it"
    )
    parser.add_argument("--ready-file", metavar="FILE", help="write the line of JSON to FILE, too")
    return parser


def _check_scenario(options: argparse.Namespace) -> None:
    """LearnerError for an option that nobody would look at, since a scenario says what is in its world."""
    if options.scenario is None:
        return
    default = _parser().get_default
    given = [name for name in OF_THE_SERVED_WORLD if getattr(options, name) != default(name)]
    if given:
        raise LearnerError(
            f"--{given[0].replace('_', '-')} is for the world that serve builds, and --scenario {options.scenario} "
            "builds its own",
            "leave one of them out, or set what the scenario lets you set with -p NAME=VALUE",
        )


def _scenario_world(options: argparse.Namespace) -> Lab:
    """A scenario's world; it keeps its history where somebody wants to see it, or to have it recorded."""
    parameters: Mapping[str, Any] = named_values(options.param)
    if options.scenario is None:
        if parameters:
            raise LearnerError("-p sets a parameter of a scenario", "say which one: --scenario two-brokers")
        parameters = {
            "brokers": options.brokers,
            "slaves": options.slaves,
            "flush": "SYNC_FLUSH" if options.sync_flush else "ASYNC_FLUSH",
            "proxies": options.proxies,
            "topics": ";".join(options.topic),
            "settings": ";".join(options.set),
            "acl": _text_of(options.acl),
        }
    return get(options.scenario or "served").build(
        seed_of(options.seed), parameters=parameters, history=bool(options.record or options.watch)
    )


def _directory_world(options: argparse.Namespace) -> Lab:
    """Brokers on directories of this machine: one on DIR itself, several on a directory in it each, by their names."""
    if options.record or options.scenario:
        raise LearnerError(
            "what a directory holds is no part of a world that can be played again",
            "leave --store out, or --record and --scenario",
        )
    lab = Lab(seed_of(options.seed), history=options.watch)
    lab.act("set_epoch", epoch_ms=time.time_ns() // 1_000_000)
    lab.name_server()
    acl = _text_of(options.acl)
    settings = broker_settings(";".join(options.set), acl)
    topics = ";".join(options.topic)
    if options.sync_flush:
        settings["flush_disk_type"] = "SYNC_FLUSH"
    root = Path(options.store)
    is_alone = options.brokers == 1 and not options.slaves
    for number in range(options.brokers):
        name = f"broker-{chr(ord('a') + number)}"
        lab.broker(name, directory=root if is_alone else root / name, **settings)
        for number_of_slave in range(1, options.slaves + 1):
            slave = f"{name}-slave-{number_of_slave}"
            lab.broker(slave, directory=root / slave, slave_of=name)
    add_proxies(lab, options.proxies, settings)
    add_topics(lab, topics)
    add_acl(lab, acl)
    return lab


def _text_of(file: str | None) -> str:
    """What stands in a file; nothing without one."""
    if file is None:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise LearnerError(f"{file} cannot be read: {error}", "give --acl a file that is there") from None


def _ports(lab: Lab, options: argparse.Namespace) -> dict[str, int]:
    first = options.broker_port
    if first is None:
        first = BROKER_PORT if options.port else 0
    step = PORTS_APART if first else 0
    ports = {process.name: options.port + i if options.port else 0 for i, process in enumerate(lab.name_servers)}
    for i, process in enumerate(lab.brokers):
        ports[process.name] = port = first + i * step
        ports[f"{process.name}{HA}"] = port + 1 if port else 0
    proxy = options.proxy_port
    if proxy is None:
        proxy = PROXY_PORT if options.port else 0
    return ports | {process.name: proxy + i if proxy else 0 for i, process in enumerate(lab.proxies)}


def _advertised(given: list[str]) -> str | dict[str, str]:
    """One host for all, or addresses by name."""
    if len(given) == 1 and "=" not in given[0]:
        return str(given[0])
    return named_values(given) if given else "auto"


def _tell(serving: Serving, took_s: float, ready_file: str | None) -> None:
    """The line of JSON; its file appears whole."""
    line = json.dumps({
        "name_server": serving.name_server,
        "endpoints": serving.endpoints,
        "processes": serving.addresses,
        "pid": os.getpid(),
        "ready_ms": round(took_s * 1_000),
    })  # fmt: skip
    if ready_file:
        beside = Path(f"{ready_file}.new")
        beside.write_text(line + "\n", encoding="utf-8")
        beside.replace(ready_file)
    print(line, flush=True)
