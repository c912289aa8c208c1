"""The name server: brokers report to it, clients ask it where the queues of a topic are."""

from mqlab.namesrv.address_server import AddressServer
from mqlab.namesrv.namesrv_config import NamesrvConfig
from mqlab.namesrv.namesrv_controller import NamesrvController
from mqlab.namesrv.route_info_manager import RouteInfoManager

__all__ = ["AddressServer", "NamesrvConfig", "NamesrvController", "RouteInfoManager"]
