"""The name server: brokers report to it, clients ask it where the queues of a topic are."""

from .address_server import AddressServer
from .namesrv_config import NamesrvConfig
from .namesrv_controller import NamesrvController
from .route_info_manager import RouteInfoManager

__all__ = ["AddressServer", "NamesrvConfig", "NamesrvController", "RouteInfoManager"]
