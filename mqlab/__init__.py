"""mqlab: a laboratory for the inside of a message queue.

A complete RocketMQ (name server, brokers, producers, consumers) in one Python process, on one deterministic clock.
Start with `Lab`:

    from mqlab import Lab, Message

    lab = Lab(seed=7)
    lab.name_server()
    lab.broker("broker-a")
    producer = lab.producer("orders")
    await producer.start()
    result = await producer.send(Message("TopicTest", b"hello", tags="TagA"))
"""

from typing import TYPE_CHECKING, Any

from mqlab.fast.choice import choose
from mqlab.lazy import lazy_names

choose()

__version__ = "0.1.0"

_HOME = {
    "Lab": "lab",
    "Message": "protocol",
    "MessageQueue": "protocol",
    "DefaultMQProducer": "client",
    "DefaultMQPushConsumer": "client",
    "DefaultLitePullConsumer": "client",
    "DefaultMQPullConsumer": "client",
    "MQPullConsumerScheduleService": "client",
    "LocalTransactionState": "client",
    "PullStatus": "client",
    "ConsumeConcurrentlyStatus": "client",
    "SendResult": "client",
    "SendStatus": "client",
    "TransactionListener": "client",
    "TransactionMQProducer": "client",
    "LinkSpec": "sim",
    "NodeSpec": "sim",
    "World": "sim",
}
"""The public names and the part that each comes from; they are imported when first used, which keeps `import mqlab`
light.
"""

__all__ = [
    "ConsumeConcurrentlyStatus",
    "DefaultLitePullConsumer",
    "DefaultMQProducer",
    "DefaultMQPullConsumer",
    "DefaultMQPushConsumer",
    "Lab",
    "LinkSpec",
    "LocalTransactionState",
    "MQPullConsumerScheduleService",
    "Message",
    "MessageQueue",
    "NodeSpec",
    "PullStatus",
    "SendResult",
    "SendStatus",
    "TransactionListener",
    "TransactionMQProducer",
    "World",
    "__version__",
    "load_ipython_extension",
]

if TYPE_CHECKING:
    from mqlab.client import (
        ConsumeConcurrentlyStatus,
        DefaultLitePullConsumer,
        DefaultMQProducer,
        DefaultMQPullConsumer,
        DefaultMQPushConsumer,
        LocalTransactionState,
        MQPullConsumerScheduleService,
        PullStatus,
        SendResult,
        SendStatus,
        TransactionListener,
        TransactionMQProducer,
    )
    from mqlab.lab import Lab
    from mqlab.protocol import Message, MessageQueue
    from mqlab.sim import LinkSpec, NodeSpec, World


_MODULES = ("scenarios", "check", "errors", "replay")

__getattr__ = lazy_names(__name__, _HOME, _MODULES)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext mqlab` calls."""
    from mqlab.ipython import load_ipython_extension as load

    load(shell)
