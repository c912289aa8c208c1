"""An empty environment with mqlab installed from out/wheels, with no clone in reach."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MADE = ROOT / "out" / "wheels"
UV = Path(sys.executable).with_name("uv")
PURE, COMPILED, SOURCE = "mqlab-*-none-any.whl", f"mqlab-*-cp3{sys.version_info.minor}-*.whl", "mqlab-*.tar.gz"
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
START_SECONDS = 120
PASSED_ON = ("JAVA_HOME", "LANG", "TMPDIR")


def made(pattern: str) -> Path:
    """The one file in out/wheels of that kind."""
    found = sorted(MADE.glob(pattern))
    if len(found) != 1:
        pytest.fail(f"{len(found)} files {pattern} in {MADE}: run `make pip-test`, which makes them", pytrace=False)
    return found[0]


class Prefix:
    """The environment: what was installed, and commands that run in an empty directory with an empty home."""

    def __init__(self, place: Path, file: Path, extras: str = "") -> None:
        self.bin = place / "env" / "bin"
        self.work = place / "work"
        self.home = place / "home"
        self.work.mkdir()
        self.home.mkdir()
        venv = [UV, "venv", "--quiet", "--python", sys.executable, place / "env"]
        # What else is installed is what the clone has pinned: another version of a package is another day's test.
        pins = [f"--constraint=requirements/{name}.txt" for name in ("build", "labs", "spark")]
        install = [UV, "pip", "install", "--quiet", "--no-verify-hashes", *pins, f"--python={self.bin / 'python'}"]
        for command in (venv, [*install, f"{file}{extras}"]):
            told = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
            assert told.returncode == 0, told.stderr

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the clone's, and no way to another machine."""
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        here = {**NOWHERE, "no_proxy": "127.0.0.1,localhost", "HOME": str(self.home)}
        return {**kept, **here, "PATH": f"{self.bin}:/usr/bin:/bin"}

    @property
    def packages(self) -> Path:
        """Where packages are installed."""
        return next((self.bin.parent / "lib").glob("python3*/site-packages"))

    def run(self, command: str, *arguments: str | Path, status: int = 0, **more: str) -> str:
        """Run a command of the environment; what it printed. It must end with that status."""
        told = subprocess.run(
            [str(self.bin / command), *map(str, arguments)], cwd=self.work, env={**self.environment, **more},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == status, f"{command} {arguments}: {told.returncode}\n{told.stdout}\n{told.stderr}"
        return told.stdout if status == 0 else told.stdout + told.stderr

    @contextmanager
    def serving(self, *arguments: str, until: str) -> Iterator[str]:
        """Run `mqlab ...`, which serves, until it has printed an address that contains `until`; that address."""
        command = [str(self.bin / "mqlab"), *arguments]
        server = subprocess.Popen(
            command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        said = []
        too_long = threading.Timer(START_SECONDS, server.kill)
        too_long.start()
        try:
            assert server.stdout is not None
            for line in server.stdout:
                said.append(line)
                address = next((word for word in line.split() if word.startswith("http") and until in word), "")
                if address:
                    yield address
                    return
            pytest.fail(f"{command} has ended:\n{''.join(said)}")
        finally:
            too_long.cancel()
            server.terminate()
            server.communicate(timeout=60)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def ask(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What a Jupyter server answers, as JSON or as text; the address is the one that it has printed, with its token."""
    base, _, token = address.partition("?token=")
    host = "/".join(base.split("/")[:3])
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{host}{path}", data, {"Authorization": f"token {token}", "Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with opener.open(request, timeout=60) as answer:
                text = answer.read().decode()
            break
        except urllib.error.URLError as refused:
            # Jupyter prints its address a moment before it listens there.
            if not isinstance(refused.reason, ConnectionRefusedError) or time.monotonic() > end:
                raise
            time.sleep(0.05)
    return json.loads(text) if path.startswith("/api") else text
