"""Settings and arguments of another type: each is told before anything happens, with what to write."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.client import Message
from mqlab.errors import LearnerError


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"send_msg_timeout": "3000"}, r"send_msg_timeout='3000' is not a whole number\n  What to do: write send_m"),
        ({"send_msg_timeout": 1.5}, "send_msg_timeout=1.5 is not a whole number"),
        ({"send_latency_enable": 1}, "send_latency_enable=1 is neither True nor False"),
        ({"instance_name": 7}, r"instance_name=7 is not a text\n  What to do: write it in quotes: instance_name='7'"),
        ({"unit_name": 7}, "unit_name=7 is not a text"),
        ({"retry_times_when_send_failed": True}, "retry_times_when_send_failed=True is not a whole number"),
        ({"client_async_semaphore_value": None}, "client_async_semaphore_value=None is not a whole number"),
    ],
)
def test_a_setting_of_a_producer_has_its_type(cluster: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(LearnerError, match=text):
        cluster.producer(**settings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"max_message_size": "4"}, r"max_message_size='4' is not a whole number\n  What to do: write max_message_s"),
        ({"auto_create_topic_enable": "yes"}, "auto_create_topic_enable='yes' is neither True nor False"),
        ({"region_id": 1}, "region_id=1 is not a text"),
        ({"wait_time_mills_in_send_queue": None}, "wait_time_mills_in_send_queue=None is not a whole number"),
    ],
)
def test_a_setting_of_a_broker_has_its_type(settings: dict[str, Any], text: str) -> None:
    lab = Lab(seed=1)
    lab.name_server()
    with pytest.raises(LearnerError, match=text):
        lab.broker(**settings)


def test_a_time_out_is_a_whole_number_of_milliseconds(producer: Any) -> None:
    hint = r"timeout='x' is not a whole number\n  What to do: give milliseconds"
    with pytest.raises(LearnerError, match=hint):
        producer.send(Message("T", "x"), timeout="x").play()
    with pytest.raises(LearnerError, match=hint):
        producer.send_async(Message("T", "x"), print, timeout="x").play()
    with pytest.raises(LearnerError, match=hint):
        producer.send_by_selector(Message("T", "x"), lambda queues, message, n: queues[n], 0, timeout="x").play()


def test_queues_selectors_and_callbacks_are_what_they_should_be(producer: Any) -> None:
    with pytest.raises(LearnerError, match="queue=1 is no queue"):
        producer.send(Message("T", "x"), queue=1).play()
    with pytest.raises(LearnerError, match="queue=1 is no queue"):
        producer.send_oneway(Message("T", "x"), queue=1).play()
    with pytest.raises(LearnerError, match="selector='hash' is no function"):
        producer.send_by_selector(Message("T", "x"), "hash", 1).play()
    with pytest.raises(LearnerError, match="selector=5 is no function"):
        producer.send_async(Message("T", "x"), print, selector=5).play()
    with pytest.raises(LearnerError, match="None is no callback"):
        producer.send_async(Message("T", "x"), None).play()
