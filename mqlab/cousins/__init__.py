"""Two cousins of Pop, as small models: a share group of Kafka (KIP-932), and a standard queue of Amazon SQS.

Each is written from its specification, and its module says what it leaves out. No part of RocketMQ knows them.
"""

from mqlab.cousins.calls import CallRefused
from mqlab.cousins.share_broker import ShareBroker, ShareConsumer
from mqlab.cousins.share_partition import AcknowledgeType, InvalidRecordState, RecordState, SharePartition
from mqlab.cousins.sqs_queue import SqsError, SqsQueue
from mqlab.cousins.sqs_service import SqsClient, SqsService

__all__ = [
    "AcknowledgeType",
    "CallRefused",
    "InvalidRecordState",
    "RecordState",
    "ShareBroker",
    "ShareConsumer",
    "SharePartition",
    "SqsClient",
    "SqsError",
    "SqsQueue",
    "SqsService",
]
