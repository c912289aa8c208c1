"""`make real`: a real RocketMQ 5.3.3 on loopback, until Ctrl-C. It prints a line of JSON as `mqlab serve` does."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from pathlib import Path

from mqlab.arguments import named_values
from mqlab.errors import LearnerError
from tests.real.rocketmq import HOST, RealRocketMQ


def main() -> int:
    """Start what is asked for, say where it is, and end it with Ctrl-C or a SIGTERM; 0, or 1 if it does not start."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the name server's port (default: any free one)")
    parser.add_argument("--broker-port", type=int, default=0, help="the broker's port; it takes two neighbours, too")
    parser.add_argument("--proxy-port", type=int, default=0, help="the proxy's port")
    parser.add_argument("--directory", type=Path, help="keep the files there, and go on with what is there")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of broker.conf")
    options = parser.parse_args()
    try:
        settings = named_values(options.set)
    except LearnerError as error:
        parser.error(f"--set: {error.message}")
    for port in filter(None, (options.port, options.broker_port, options.proxy_port)):
        try:
            socket.create_server((HOST, port)).close()
        except OSError as error:
            parser.error(f"port {port} is not to be had: {os.strerror(error.errno or 0)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with RealRocketMQ(options.directory, options.port) as real:
            real.broker(port=options.broker_port, **settings)
            real.proxy(port=options.proxy_port)
            addresses = {process.name: process.address for process in real.processes}
            line = {"name_server": real.name_server, "endpoints": real.endpoints, "processes": addresses}
            print(json.dumps({**line, "pid": os.getpid()}), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except RuntimeError as error:
        print(str(error).strip(), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
