"""The name server: brokers report to it, clients ask it where the queues of a topic are."""

from .namesrv_config import NamesrvConfig
from .namesrv_controller import NamesrvController
from .route_info_manager import RouteInfoManager

__all__ = ["NamesrvConfig", "NamesrvController", "RouteInfoManager"]
