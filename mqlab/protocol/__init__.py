"""What travels between nodes and what is stored, byte for byte RocketMQ's.

Typed headers are in `mqlab.protocol.headers`, JSON bodies in `heartbeat`, `route`, `topic_config` and `bodies`.
"""

from mqlab.protocol.batch import (
    BatchEntry,
    MessageBatch,
    decode_batch,
    encode_batch,
    encode_batch_entry,
    unwrap_inner_batch,
)
from mqlab.protocol.codes import (
    CURRENT_VERSION,
    ClientErrorCode,
    LanguageCode,
    RequestCode,
    ResponseCode,
    code_name,
)
from mqlab.protocol.command import (
    FRAME_MAX_LENGTH,
    RemotingCommand,
)
from mqlab.protocol.compression import (
    compress,
    compression_flag,
    decompress,
)
from mqlab.protocol.errors import (
    BodyError,
    CommandError,
    CompressionError,
    HeaderError,
    MessageIdError,
    RecordError,
)
from mqlab.protocol.hashing import (
    index_key_hash,
    java_map_order,
    java_number_order,
    java_string_hash,
    tags_code,
)
from mqlab.protocol.header_codec import (
    decode_header,
    encode_header,
)
from mqlab.protocol.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    ExpressionType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import (
    Message,
    MessageConst,
    MessageExt,
    MessageQueue,
)
from mqlab.protocol.message_id import (
    MessageId,
    UniqueKeyGenerator,
    create_message_id,
    decode_message_id,
    decode_unique_key,
)
from mqlab.protocol.properties import (
    decode_properties,
    encode_properties,
)
from mqlab.protocol.record import (
    BLANK_MAGIC_CODE,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    decode_record,
    encode_blank,
    encode_record,
    record_size,
    scan_records,
)
from mqlab.protocol.route import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from mqlab.protocol.sysflag import (
    MessageSysFlag,
    PermName,
    PullSysFlag,
    TopicSysFlag,
)
from mqlab.protocol.topic_config import (
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
)
from mqlab.protocol.topics import (
    check_group,
    check_message,
    check_topic,
    dlq_topic,
    is_system_topic,
    retry_topic,
    validate_topic,
)

__all__ = [
    "BLANK_MAGIC_CODE",
    "CURRENT_VERSION",
    "FRAME_MAX_LENGTH",
    "MESSAGE_MAGIC_CODE",
    "MESSAGE_MAGIC_CODE_V2",
    "BatchEntry",
    "BodyError",
    "BrokerData",
    "ClientErrorCode",
    "ClusterInfo",
    "CommandError",
    "CompressionError",
    "ConsumeFromWhere",
    "ConsumeType",
    "ConsumerData",
    "DataVersion",
    "ExpressionType",
    "HeaderError",
    "HeartbeatData",
    "KVTable",
    "LanguageCode",
    "Message",
    "MessageBatch",
    "MessageConst",
    "MessageExt",
    "MessageId",
    "MessageIdError",
    "MessageModel",
    "MessageQueue",
    "MessageSysFlag",
    "PermName",
    "ProducerData",
    "PullSysFlag",
    "QueueData",
    "RecordError",
    "RegisterBrokerBody",
    "RemotingCommand",
    "RequestCode",
    "ResponseCode",
    "SubscriptionData",
    "SubscriptionGroupConfig",
    "TopicConfig",
    "TopicConfigAndMappingSerializeWrapper",
    "TopicConfigSerializeWrapper",
    "TopicRouteData",
    "TopicSysFlag",
    "UniqueKeyGenerator",
    "build_subscription_data",
    "check_group",
    "check_message",
    "check_topic",
    "code_name",
    "compress",
    "compression_flag",
    "create_message_id",
    "decode_batch",
    "decode_header",
    "decode_message_id",
    "decode_properties",
    "decode_record",
    "decode_unique_key",
    "decompress",
    "dlq_topic",
    "encode_batch",
    "encode_batch_entry",
    "encode_blank",
    "encode_header",
    "encode_properties",
    "encode_record",
    "index_key_hash",
    "is_system_topic",
    "java_map_order",
    "java_number_order",
    "java_string_hash",
    "record_size",
    "retry_topic",
    "scan_records",
    "tags_code",
    "unwrap_inner_batch",
    "validate_topic",
]
