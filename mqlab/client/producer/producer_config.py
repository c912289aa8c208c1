"""The settings of a producer."""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.client.client_config import ClientConfig
from mqlab.protocol.compression import COMPRESS_OVER_BYTES, DEFAULT_LEVEL, ZLIB
from mqlab.protocol.topics import AUTO_CREATE_TOPIC_KEY_TOPIC, MAX_MESSAGE_SIZE


@dataclass(eq=False, repr=False)
class ProducerConfig(ClientConfig):
    """What a producer may set; times in ms, sizes in bytes (org.apache.rocketmq.client.producer.DefaultMQProducer)."""

    create_topic_key: str = AUTO_CREATE_TOPIC_KEY_TOPIC
    """The template topic, whose route a topic gets that does not exist yet."""
    default_topic_queue_nums: int = 4
    send_msg_timeout: int = 3_000
    """The whole budget of one send, all attempts together."""
    send_msg_max_timeout_per_request: int = -1
    """The most that one attempt may take while others remain; -1 means all of the budget."""
    retry_times_when_send_failed: int = 2
    retry_times_when_send_async_failed: int = 2
    retry_another_broker_when_not_store_ok: bool = False
    request_ends_when_sent: bool = False
    """What releases 5.3.1 to 5.3.3 do by mistake: a request waits no longer than its message takes to be sent, and
    fails if its reply has not come by then; a callback first hears of no reply, and then of the reply."""
    compress_msg_body_over_howmuch: int = COMPRESS_OVER_BYTES
    compress_type: str = ZLIB
    compress_level: int = DEFAULT_LEVEL
    max_message_size: int = MAX_MESSAGE_SIZE
    enable_backpressure_for_async_mode: bool = False
    back_pressure_for_async_send_num: int = 10_000
    """How many asynchronous sends may be on their way; releases after 5.3.3 have 1,024."""
    back_pressure_for_async_send_size: int = 100 * 1024 * 1024
    auto_batch: bool = False
    """Let messages of one topic and tag wait for each other and travel as one."""
    batch_max_delay_ms: int = -1
    """How long they wait at most; -1 means 10 ms."""
    batch_max_bytes: int = -1
    """The size from which they go at once; -1 means 32 KiB."""
    total_batch_max_bytes: int = -1
    """How much may wait in all; -1 means 32 MiB. A message that finds no room travels alone."""
