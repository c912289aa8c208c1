"""The door of a world: real sockets, through which programs outside talk to its name server and brokers.

`Serving` plays a lab's world at the pace of the real clock on a thread of its own, with the sockets; what comes in is
done to the world as recorded actions (`mqlab.sim.outside`). Nothing here is imported by a world that is not served.
"""

from mqlab.serving.serving import Serving

__all__ = ["Serving"]
