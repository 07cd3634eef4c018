"""Programs that stay, for the hob web server.

`for request in hob.requests():` is the plain loop (loop.py); the server also runs WSGI and ASGI
applications (wsgi.py, asgi.py, started by host.py). stream.py speaks the protocol.
"""

from .loop import Headers, Request, concurrency, lifetime, requests
from .stream import Cancelled, Disconnected, Malformed

__all__ = [
    "Cancelled",
    "Disconnected",
    "Headers",
    "Malformed",
    "Request",
    "concurrency",
    "lifetime",
    "requests",
]
__version__ = "0.1.0"
