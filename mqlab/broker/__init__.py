"""The broker: takes in messages, keeps them, and gives them to consumers."""

from mqlab.broker.broker_config import BrokerConfig, ServiceTimes
from mqlab.broker.broker_controller import BrokerController

__all__ = ["BrokerConfig", "BrokerController", "ServiceTimes"]
