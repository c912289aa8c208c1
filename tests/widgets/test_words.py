"""The sentences: every event kind is said or silent for a reason, and what is said is plain."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from mqlab import Lab
from mqlab.scenarios import get
from mqlab.sim import FAULTS
from mqlab.trace.catalogue import CATALOGUE, fields_of
from mqlab.trace.record import FIRST_FIELD, Record
from mqlab_widgets.labels import label_of
from mqlab_widgets.sentences import SENTENCES, SILENT
from mqlab_widgets.words import action_words, clock, say, span_words
from tests.worlds import played

SAID_OF = {
    "steady-load": 2.2,
    "two-brokers": 24,
    "broker-hangs": 20,
    "busy-broker": 4,
    "maintenance": 30,
    "retry-and-dead-letters": 60,
    "orders-cut-off": 30,
    "pull-schedule": 10,
    "lite-pull": 10,
    "batches": 3,
    "held-back-by-span": 6,
    "orderly-rebalance": 12,
    "proxy-transactions": 35,
}


@pytest.fixture(scope="module")
def labs() -> dict[str, Lab]:
    """Worlds in which most of what can happen does."""
    return {name: played(name, seconds) for name, seconds in SAID_OF.items()}


def sentences(lab: Lab) -> Iterator[tuple[Record, str]]:
    return ((record, said) for record in lab.history if (said := say(record, lab)))


def test_every_event_kind_is_said_or_silent_for_a_reason() -> None:
    assert not set(SENTENCES) & set(SILENT)
    assert set(SENTENCES) | set(SILENT) == set(CATALOGUE)
    assert all(SILENT.values())


def test_every_sentence_can_be_said_of_an_event_of_its_kind() -> None:
    lab = get("first-message").build(7)
    samples = {"arguments": '{"node": "broker-a"}', "verb": "crash", "reason": "count"}
    for kind in SENTENCES:
        values = []
        for name in fields_of(kind):
            field_type = CATALOGUE[kind].__annotations__[name]
            text = samples.get(name, "0A00000403EC14AE5A5A0000081E0014")
            values.append(text if "str" in str(field_type) else 3)
        common = [0, 0, 0, "broker-a", "task", -1, -1, kind]
        assert len(common) == FIRST_FIELD
        said = say(Record((*common, *values)), lab)
        assert "{" not in said


def test_what_is_said_is_plain_words_without_addresses_or_symbols(labs: dict[str, Lab]) -> None:
    for lab in labs.values():
        for _, said in sentences(lab):
            assert not re.search(r"\d+\.\d+\.\d+\.\d+|[<>{}_%=@#]|CODE|0A00", said), said
            assert said == said.strip()
            assert not said.endswith((".", ":")), said


def test_the_way_of_a_message_is_told_sentence_by_sentence(labs: dict[str, Lab]) -> None:
    lab = labs["steady-load"]
    sent = next(record for record in lab.history.find("SendAttempted") if record.msg_id.endswith("0014"))
    after = lab.history.records(lab.history.index_of(sent.at), lab.history.index_of(sent.at) + 40)
    told = [said for record in after if (said := say(record, lab))]
    assert told[:15] == [
        "producer-1 sends message 20 to broker-a, queue 0",
        "message 20 has reached broker-a",
        "broker-a stored message 20 at the end of its commit log, for queue 0",
        "broker-a answers producer-1: message 20 is stored",
        "producer-1 knows now that message 20 is stored",
        "broker-a: message 20 is in queue 0 now, where it can be pulled",
        "broker-a: a message came to queue 0, so consumer-1's waiting request is looked at again",
        "broker-a gives consumer-1 1 message of queue 0",
        "consumer-1 got 1 message of queue 0, and keeps it for its listener",
        "consumer-1: the listener got message 20",
        "consumer-1: the listener is done with message 20",
        "consumer-1 asks broker-a for messages of queue 0, from offset 6 on",
        "consumer-1's question for messages of queue 0 has reached broker-a",
        "broker-a has nothing new in queue 0 and keeps consumer-1's request, for 15 s at most",
        "broker-a notes that readers goes on at offset 6 of queue 0",
    ]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("two-brokers", "broker-b was killed: what it had in memory is gone"),
        ("two-brokers", "from outside: crash broker-b"),
        ("broker-hangs", "broker-b hangs: it keeps its connections and answers nothing"),
        ("busy-broker", "the broker is too busy"),
        ("maintenance", "broker-a was started again"),
        ("orders-cut-off", "broker-a lost power: what was not yet on its disk is gone"),
        ("retry-and-dead-letters", "consumer-2 gave message 0 back, to get it again later"),
        ("retry-and-dead-letters", "broker-a keeps message 0 back for 10 s"),
        ("retry-and-dead-letters", "broker-a gives up on message 0: it goes to the dead letters of readers"),
        ("retry-and-dead-letters", "consumer-1: the listener got message 0, after it failed twice"),
        ("batches", "6 messages, 31 to 36"),
        ("held-back-by-span", "so it does not ask for more now"),
        ("proxy-transactions", "proxy-1 knows where the half of message 0 lies, and tells broker-a how it ended"),
        ("proxy-transactions", "proxy-2 refuses what producer-2 asks: it does not know where the half message lies"),
        ("proxy-transactions", "proxy-2 hands the question about message 2 on to producer-2"),
        ("proxy-transactions", "producer-2 is asked about message 2, and says rollback"),
    ],
)
def test_faults_retries_and_limits_are_told(labs: dict[str, Lab], scenario: str, said: str) -> None:
    assert any(said in told for _, told in sentences(labs[scenario]))


def test_what_was_done_from_outside_is_named_with_its_machines(labs: dict[str, Lab]) -> None:
    lab = played("first-message", 1)
    lab.partition("producer-1", ["broker-a", "namesrv-1"])
    lab.disconnect("consumer-1", "broker-a")
    done = [action_words(record) for record in lab.history.find("ActionTaken")]
    assert done == ["cut producer-1 and broker-a, namesrv-1", "disconnect consumer-1 and broker-a"]


def test_messages_of_the_second_sender_have_a_letter_whatever_was_asked_first(labs: dict[str, Lab]) -> None:
    lab = played("broker-hangs", 20)
    sent = [record.msg_id for record in lab.history.find("SendAttempted")]
    for key in reversed(sent):
        label_of(key, lab)
    first = {label_of(key, lab): key for key in reversed(sent)}
    assert [label for label in first if int(label.rstrip("abc")) == 5] == ["5c", "5b", "5a", "5"]
    assert label_of("", lab) == ""
    again = labs["broker-hangs"]
    assert {label: label_of(key, again) for label, key in first.items()} == {label: label for label in first}


def test_every_action_has_words_of_its_own_about_its_arguments() -> None:
    assert len({kind.said for kind in FAULTS.values()}) == len(FAULTS)
    for kind in FAULTS.values():
        assert set(re.findall(r"{(\w+)}", kind.said)) <= set(inspect.signature(kind.do).parameters)


def test_a_length_of_time_has_the_unit_of_its_size() -> None:
    lengths = (232, 15_000, 401_580, 15_000_000, 125_000_000, 3_600_000_000)
    assert [span_words(us) for us in lengths] == ["0.232 ms", "15 ms", "402 ms", "15 s", "2 min 5 s", "60 min"]
    assert clock(6_098_040) == "6.098 s"
