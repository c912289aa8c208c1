"""The broker: takes in messages, keeps them, and gives them to consumers."""

from .broker_config import BrokerConfig, ServiceTimes
from .broker_controller import BrokerController

__all__ = ["BrokerConfig", "BrokerController", "ServiceTimes"]
