"""A session of mqadmin 5.3.3: what an administrator types, and what is printed of a served world or a real RocketMQ.

Two sessions are compared line by line, so what differs from one to the next (times, ids, addresses, sizes that depend
on the machine's address) is replaced by words. `tests/golden/mqadmin.txt` is the session with a real RocketMQ 5.3.3.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from tests.real.rocketmq import JARS, compiled

GOLDEN = Path(__file__).parent.parent / "golden" / "mqadmin.txt"

SESSION = """
updateTopic -c DefaultCluster -t Orders -r 2 -w 2
updateTopic -b BROKER -t Steps -r 1 -w 1 -o true
updateTopic -b BROKER -t Typed -r 1 -w 1 -a +message.type=FIFO
updateTopic -b BROKER -t Again -r 1 -w 1
updateTopic -b BROKER -t Wrong/name
updateTopicPerm -b BROKER -t Steps -p 4
updateTopicPerm -c DefaultCluster -t Steps -p 6
updateTopicPerm -c DefaultCluster -t Nothing -p 6
updateSubGroup -c DefaultCluster -g readers
updateSubGroup -b BROKER -g careful -s true -m false -d false -o true -q 2 -r 3 -i 0 -w 1 -a true
setConsumeMode -b BROKER -t Orders -g careful -m POP -q 2
setConsumeMode -c DefaultCluster -t Orders -g careful -m PULL
getConsumerConfig -g careful
getConsumerConfig -g nobody
!send Orders 0 red key-1 one
!send Orders 0 blue key-2 two
!send Orders 1 red key-2 three
!send Again 0 red key-3 again
!subscribe readers Orders
!consumed 3
!commit
topicList
topicList -c
topicRoute -t Orders
topicRoute -t Orders -l
topicRoute -t Nothing
topicClusterList -t Orders
topicStatus -t Orders
topicStatus -t Orders -c DefaultCluster
topicStatus -t Typed
topicStatus -t Nothing
statsAll
statsAll -a
statsAll -t Orders
allocateMQ -t Orders -i one,two
clusterList
clusterList -m
brokerStatus -b BROKER
brokerStatus -c DefaultCluster
getBrokerConfig -b BROKER
getBrokerConfig -c DefaultCluster
haStatus -b BROKER
brokerConsumeStats -b BROKER
brokerConsumeStats -b BROKER -o true
sendMsgStatus -b broker-a -c 2
producer -b BROKER
producerConnection -g producers -t Orders
producerConnection -g nobody -t Orders
consumerConnection -g readers
consumerConnection -g readers -b BROKER
consumerConnection -g nobody
consumerProgress
consumerProgress -g readers
consumerProgress -g readers -t Orders
consumerProgress -g readers -s true
consumerProgress -g nobody
consumerStatus -g readers
consumerStatus -g readers -i CLIENT
consumerStatus -g readers -i CLIENT -s
consumerStatus -g nobody
queryMsgById -t Orders -i OFFSET-1
queryMsgById -t Orders -i UNIQUE-1
queryMsgById -t Orders -i OFFSET-1 -g readers -d CLIENT
queryMsgById -t Orders -i OFFSET-1,OFFSET-2 -f UTF-8
queryMsgById -t Orders -i 7F00000100002A9F0000000000FFFFFF
queryMsgById -t Again -i OFFSET-4 -s true
queryMsgByKey -t Orders -k key-2
queryMsgByKey -t Orders -k key-2 -m 1
queryMsgByKey -t Orders -k nothing
queryMsgByKey -t Nothing -k key-2
queryMsgByUniqueKey -t Orders -i UNIQUE-2
queryMsgByUniqueKey -t Orders -i UNIQUE-2 -a
queryMsgByUniqueKey -t Orders -i UNIQUE-2 -g readers -d CLIENT
queryMsgByUniqueKey -t Orders -i UNIQUE-2 -c DefaultCluster
queryMsgByUniqueKey -t Orders -i nothing
queryMsgByOffset -t Orders -b broker-a -i 1 -o 0
queryMsgByOffset -t Orders -b broker-a -i 1 -o 0 -f UTF-8
queryMsgByOffset -t Orders -b broker-a -i 1 -o 99
printMsg -t Orders -d true
printMsg -t Orders -d true -s blue
printMsgByQueue -t Orders -a broker-a -i 0 -p true -d true
printMsgByQueue -t Orders -a broker-a -i 0 -f true -s red
queryCq -t Orders -q 0 -i 0 -c 10 -b BROKER
queryCq -t Orders -q 0 -i 0 -c 10 -b BROKER -g readers
queryCq -t Orders -q 0 -i 0 -c 10
queryCq -t Orders -q 0 -i 99 -c 10 -b BROKER
queryCq -t Nothing -q 0 -i 0 -c 10 -b BROKER
sendMessage -t Again -p four -k key-4 -c green
sendMessage -t Orders -p five -k key-5 -c green -b broker-a -i 1
!consumed 3
!commit
checkMsgSendRT -t Steps -a 3 -s 10
consumeMessage -t Orders -b broker-a -i 1 -o 0 -c 2
consumeMessage -t Again -c 1
consumeMessage -t Orders -b broker-a -i 1 -g mqadmin-readers -o 0 -c 1
consumerProgress -g readers
resetOffsetByTime -g readers -t Orders -s 0
!consumed 4
!commit
consumerProgress -g readers
resetOffsetByTime -g readers -t Orders -s now
skipAccumulatedMessage -g readers -t Orders
resetOffsetByTime -g readers -t Orders -s 0 -b BROKER -q 0
resetOffsetByTime -g readers -t Orders -b BROKER -q 0 -o 1 -s 0
cloneGroupOffset -s readers -d copies -t Orders -o true
cloneGroupOffset -s nobody -d copies -t Orders -o true
consumerProgress -g copies
!stop
consumerConnection -g readers
consumerStatus -g readers
resetOffsetByTime -g readers -t Orders -s 0
resetOffsetByTime -g readers -t Orders -s now
resetOffsetByTime -g readers -t Orders -s 0 -b BROKER -q 0
resetOffsetByTime -g readers -t Orders -b BROKER -q 0 -o 1 -s 0
resetOffsetByTime -g nobody -t Orders -s 0
resetOffsetByTime -g readers -t Nothing -s 0
skipAccumulatedMessage -g readers -t Orders
consumerProgress -g readers
consumerProgress
updateOrderConf -m put -t Steps -v broker-a:1
updateOrderConf -m get -t Steps
topicRoute -t Steps
updateOrderConf -m delete -t Steps
updateOrderConf -m get -t Steps
updateKvConfig -s space -k name -v value
deleteKvConfig -s space -k name
deleteKvConfig -s nothing -k name
getNamesrvConfig
updateNamesrvConfig -k orderMessageEnable -v true
updateNamesrvConfig -k kvConfigPath -v /nowhere
wipeWritePerm -b broker-a
topicRoute -t Orders -l
addWritePerm -b broker-a
topicRoute -t Orders -l
wipeWritePerm -b nothing
updateBrokerConfig -b BROKER -k messageDelayLevel -v 1s
updateBrokerConfig -b BROKER -k fileReservedTime -v 48
updateBrokerConfig -c DefaultCluster -k fileReservedTime -v 72
updateBrokerConfig -b BROKER -k fileReservedTime -v many
updateBrokerConfig -b BROKER -k brokerConfigPath -v /nowhere
updateBrokerConfig -b BROKER -k unknownSetting -v 1
cleanExpiredCQ -b BROKER
cleanExpiredCQ -c DefaultCluster
cleanUnusedTopic -b BROKER
cleanUnusedTopic -c DefaultCluster
deleteExpiredCommitLog -b BROKER
deleteExpiredCommitLog -c DefaultCluster
resetMasterFlushOffset -b BROKER -o 0
getColdDataFlowCtrInfo -b BROKER
getColdDataFlowCtrInfo -c DefaultCluster
updateColdDataFlowCtrGroupConfig -b BROKER -g readers -v 1000
getColdDataFlowCtrInfo -b BROKER
removeColdDataFlowCtrGroupConfig -b BROKER -g readers
setCommitLogReadAheadMode -b BROKER -m 1
setCommitLogReadAheadMode -b BROKER -m 0
getBrokerEpoch -b broker-a
deleteSubGroup -b BROKER -g careful -r true
deleteSubGroup -c DefaultCluster -g readers
deleteSubGroup -b BROKER -g nobody
deleteTopic -c DefaultCluster -t Orders
deleteTopic -c DefaultCluster -t Nothing
topicRoute -t Orders
topicList
consumerProgress
help topicStatus
nothing
"""
"""Words in capitals stand for what is known when the session runs: an address, a client, the ids of the message that
was sent as the first, the second ... Lines with "!" are for the producer and the consumers beside mqadmin."""

TITLES = {
    "statsAll -a": "what is active hangs on the minute in which it is asked",
    "getBrokerConfig": "brokers of mqlab have the settings that they follow, and no others",
    "getNamesrvConfig": "so have name servers",
}
"""Commands of whose answers only the titles and the errors are compared, by their first words, with the reason."""

WITHOUT_FIGURES = {
    "statsAll": "figures of the last minutes hang on when they are asked for",
    "clusterList": "the same; and each machine has a disk of its own",
}
"""Commands of whose answers all but the figures is compared, with the reason."""

A_PART = {"brokerStatus": "brokers of mqlab tell a part of what a real one tells"}
"""Commands of whose answers only the names are compared, with the reason: each is one that a real one tells."""

OTHERWISE = {
    "updateBrokerConfig -b BROKER -k fileReservedTime -v many": "DESC: fileReservedTime=many is not a number",
    "setCommitLogReadAheadMode": "DESC: request type 2004 not supported",
}
"""Commands that end otherwise than with a real one, and how: that one takes any text for a number, and stumbles over
Java's own fences."""

_ENDS_OF_CLIENTS = "consumerStatus -g readers -i CLIENT"
"""What this prints is the Java client's own: its settings and its threads. Here only the titles count."""

_WORDS = (
    (r"\tat .*\n|\t\.\.\. \d+ more\n", ""),
    (r"(?<![0-9A-F])[0-9A-F]{32}(?![0-9A-F])|(?<![0-9A-F])[0-9A-F]{56}(?![0-9A-F])", "ID"),
    (r"(Message Body Path:).*", r"\1 FILE"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d([,:.]\d{3})?", "TIME"),
    (r"\b1[789]\d{11}\b", "TIME"),
    (r"/?(?:\d+\.){3}\d+:\d{4,5}\b|/?\[[0-9a-f:]+\]:\d{4,5}\b", "ADDRESS"),
    (r"(storeSize|commitLogOffset|physicOffset|physicSize|spentTimeMills|rt)=\d+(ms)?", r"\1=N"),
    (r"(CommitLog Offset:|#MasterCommitLogMaxOffset|(?:Consume|Put) TPS:|Avg RT:)\s+[\d.]+", r"\1 N"),
    (r"(broker-a +\d+ +true +)\d+", r"\1N"),
    (r"module @0x[0-9a-f]+", "module N"),
)


def is_one_of(command: str, first_words: Iterable[str]) -> bool:
    """Does a command begin with some of these words?"""
    return any(f"{command} ".startswith(f"{words} ") for words in first_words)


def normalised(command: str, printed: str, words: dict[str, str]) -> str:
    """What a command has printed, as it is compared."""
    for name in ("CLIENT", "IP", "BROKER"):
        if name in words:
            printed = printed.replace(words[name], name)
    for pattern, word in _WORDS:
        printed = re.sub(pattern, word, printed)
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    if is_one_of(command, WITHOUT_FIGURES):
        lines = [re.sub(r"\b(?:\d+(?:\.\d+)?|null)", "N", line) for line in lines]
    if is_one_of(command, TITLES):
        lines = [line for line in lines if line.startswith(("#", "=")) or "Exception" in line]
    if is_one_of(command, A_PART):
        lines = [re.split(" ?:|_/", line)[0] for line in lines]
    if command.startswith(_ENDS_OF_CLIENTS):
        lines = [line for line in lines if line.startswith("#")]
    if command.startswith("producer "):
        lines.sort()
    return "\n".join(filter(None, lines))


def play(name_server: str, broker: str, home: Path) -> str:
    """Play the session; its text, a command and what it printed after the other."""
    words, sent, text = {"BROKER": broker}, 0, []
    classpath = compiled(JARS, Path(__file__).with_name("Mqadmin.java"), home)
    with Mqadmin(classpath, name_server, home) as mqadmin:
        for command in SESSION.strip().splitlines():
            printed = mqadmin.run(re.sub("[A-Z]+(-[0-9])?", lambda m: words.get(m[0], m[0]), command))
            if command.startswith("!send"):
                sent += 1
                assert len(printed.split()) == 2, printed
                words[f"UNIQUE-{sent}"], words[f"OFFSET-{sent}"] = printed.split()
            elif command.startswith("!subscribe"):
                words["CLIENT"] = printed.strip()
                words["IP"] = words["CLIENT"].partition("@")[0]
            text.append(f"$ {command}\n{normalised(command, printed, words)}".rstrip() + "\n")
    return "\n".join(text)


def sections(text: str) -> dict[str, str]:
    """What was printed by command; those that were given again have a number."""
    found: dict[str, str] = {}
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, _, printed = part.partition("\n")
        times = sum(1 for name in found if name.partition(" #")[0] == command)
        found[f"{command} #{times + 1}" if times else command] = printed.strip()
    return found


class Mqadmin:
    """A Java program that runs mqadmin's commands one after the other, which is faster than a process for each."""

    def __init__(self, classpath: str, name_server: str, home: Path) -> None:
        command = ["java", "-Xmx300m", f"-Duser.home={home}", "-cp", classpath, "Mqadmin", name_server]
        self._log = (home / "mqadmin.log").open("w")
        self._process = subprocess.Popen(
            command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, bufsize=1
        )

    def __enter__(self) -> Mqadmin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    def run(self, command: str) -> str:
        """What it prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(command.split()) + "\n")
        self._process.stdin.flush()
        return base64.b64decode(self._process.stdout.readline()).decode()
