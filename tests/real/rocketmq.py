"""A real Apache RocketMQ 5.3.3 on this machine: the one that `make real` fetches, unmodified, in processes of its own.

    with RealRocketMQ() as real:
        broker = real.broker("broker-a", flushDiskType="SYNC_FLUSH")
        real.broker("broker-a", brokerId=1, brokerRole="SLAVE")
        real.proxy()
        ...  # clients of 4.x go to real.name_server, those of 5.x to real.endpoints

All of it listens on loopback. Files and logs lie in one directory, which goes with it unless it is given.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import TracebackType

JARS = Path(os.environ.get("MQLAB_REAL", ".cache/real"))
"""Where `make real-jars` puts RocketMQ."""

HOST = "127.0.0.1"
READY_S = 60
STOPPED_S = 30


class RealProcess:
    """A process of a real RocketMQ, which takes requests at `address`; what it prints is in the file `log`."""

    def __init__(self, name: str, port: int, directory: Path, command: list[str], says_ready: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.port = port
        self.address = f"{HOST}:{port}"
        self.directory = directory
        self.log = directory / "printed.txt"
        self._says_ready = says_ready
        self._told = Event()
        self._is_ready = False
        # A process group of its own: Ctrl-C in a terminal is for the program that ends all of them in order.
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "ROCKETMQ_HOME": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.log.open("a", encoding="utf-8") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                if self._says_ready in line:
                    self._is_ready = True
                    self._told.set()
        self._told.set()

    def wait_until_ready(self) -> None:
        """Wait until it takes requests; RuntimeError with what it printed if it ended or takes too long."""
        self._told.wait(READY_S)
        if not self._is_ready:
            raise RuntimeError(f"{self.name} did not start:\n{self.log.read_text(encoding='utf-8')}")

    def stop(self) -> None:
        """End it as an operator does, so that its files are in order."""
        self.process.terminate()
        self.wait_until_ended()

    def kill(self) -> None:
        """End it as a power loss of its process does."""
        self.process.kill()
        self.wait_until_ended()

    def wait_until_ended(self) -> None:
        """Wait for its end; who does not end in time is killed."""
        try:
            self.process.wait(STOPPED_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        finally:
            self.process.wait()
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()


class RealBroker(RealProcess):
    """A real broker; slaves get its log at `ha_address`."""

    def __init__(self, name: str, port: int, directory: Path, command: list[str], ha_port: int) -> None:
        super().__init__(name, port, directory, command, "boot success")
        self.ha_address = f"{HOST}:{ha_port}"


class RealRocketMQ:
    """A name server, and what is asked for beside it; all ends with the `with`.

    `directory` keeps the files; without it they are thrown away. `memory` is the -Xmx of each process.
    """

    def __init__(self, directory: Path | None = None, port: int = 0, memory: str = "512m") -> None:
        need(JARS)
        self._given = directory
        self._port = port
        self._memory = memory
        self._stack = ExitStack()
        self._directory = Path()
        self.processes: list[RealProcess] = []
        self.name_server = ""
        """Where clients of 4.x find it: "127.0.0.1:PORT"."""
        self.endpoints = ""
        """Where clients of 5.x do: its proxies."""

    def __enter__(self) -> RealRocketMQ:
        directory = self._given or self._stack.enter_context(
            TemporaryDirectory(prefix="real-", ignore_cleanup_errors=True)
        )
        self._directory = Path(directory).absolute()
        try:
            self._start_name_server()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process: in order, which takes 15 s, where the files are kept, else at once."""
        try:
            if self._given:
                for process in self.processes:
                    process.process.terminate()
                for process in self.processes:
                    process.wait_until_ended()
        finally:
            for process in self.processes:
                process.kill()
            self._stack.close()

    def _command(self, main_class: str, home: Path, *arguments: str) -> list[str]:
        """Its logs go where `user.home` says."""
        options = [f"-Xmx{self._memory}", f"-Duser.home={home}"]
        return ["java", *options, "-cp", f"{JARS.absolute()}/*", main_class, *arguments]

    def _started(self, process: RealProcess) -> None:
        self.processes.append(process)
        process.wait_until_ready()

    def _start_name_server(self) -> None:
        port, home = self._port or free_port(), self._directory / "namesrv"
        file = _properties(home / "namesrv.conf", {"listenPort": port, "bindAddress": HOST})
        main_class = "org.apache.rocketmq.namesrv.NamesrvStartup"
        command = self._command(main_class, home, "-c", str(file))
        self._started(RealProcess("namesrv", port, home, command, "boot success"))
        self.name_server = f"{HOST}:{port}"

    def broker(
        self, name: str = "broker-a", *, port: int = 0, ha_port: int = 0, **settings: str | int | bool
    ) -> RealBroker:
        """Start a broker and wait until it is registered.

        The settings are those of broker.conf. A slave is told its master's name and `brokerRole="SLAVE", brokerId=1`;
        the address of its master's log it learns from the name server, unless `haMasterAddress` gives it.
        """
        broker_id = settings.get("brokerId", 0)
        home = self._directory / (f"{name}-{broker_id}" if broker_id else name)
        port = port or free_port(also=(-2, 1))
        ha_port = ha_port or port + 1
        given: dict[str, str | int | bool] = {
            "brokerName": name,
            "brokerIP1": HOST,
            "brokerIP2": HOST,
            "bindAddress": HOST,
            "listenPort": port,
            "haListenPort": ha_port,
            "namesrvAddr": self.name_server,
            "storePathRootDir": str(home / "store"),
        }
        file = _properties(home / "broker.conf", given | settings)
        command = self._command("org.apache.rocketmq.broker.BrokerStartup", home, "-c", str(file))
        broker = RealBroker(home.name, port, home, command, ha_port)
        self._started(broker)
        return broker

    def proxy(self, *, port: int = 0, **settings: str | int | bool) -> RealProcess:
        """Start a proxy in cluster mode; the settings are those of rmq-proxy.json."""
        number = 1 + sum(process.name.startswith("proxy-") for process in self.processes)
        home = self._directory / f"proxy-{number}"
        port = port or free_port()
        given: dict[str, str | int | bool] = {
            "proxyMode": "cluster",
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": self.name_server,
            "grpcServerPort": port,
            "remotingListenPort": free_port(),
            "localServeAddr": HOST,
        }
        home.mkdir(parents=True, exist_ok=True)
        file = home / "rmq-proxy.json"
        file.write_text(json.dumps(given | settings), encoding="utf-8")
        command = self._command("org.apache.rocketmq.proxy.ProxyStartup", home, "-pc", str(file))
        proxy = RealProcess(home.name, port, home, command, "startup successfully")
        self._started(proxy)
        self.endpoints = ";".join(filter(None, (self.endpoints, proxy.address)))
        return proxy


def need(jars: Path) -> None:
    """RuntimeError, with what to do, if jars were not fetched."""
    if not jars.is_dir():
        target = "real-jars" if jars == JARS else "clients-test"
        raise RuntimeError(f"{jars} is not there: make {target} fetches it")


def compiled(jars: Path, source: Path, made: Path) -> str:
    """The class path of jars and of a program, compiled with them into a directory; RuntimeError without the jars."""
    need(jars)
    jars = jars.absolute()
    subprocess.run(["javac", "-nowarn", "-proc:none", "-d", str(made), "-cp", f"{jars}/*", str(source)], check=True)
    return f"{made}:{jars}/*"


def free_port(also: tuple[int, ...] = ()) -> int:
    """A free port on loopback, so far from which those of `also` are free, too: brokers take their neighbours.

    It lies below those that systems give to connections that go out, so that none of these takes it meanwhile.
    """
    while True:
        port = random.randrange(12_000, 32_000)
        with suppress(OSError), ExitStack() as opened:
            for distance in (0, *also):
                opened.enter_context(closing(socket.create_server((HOST, port + distance))))
            return port


def _properties(file: Path, settings: dict[str, str | int | bool]) -> Path:
    """A file of Java's properties."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
