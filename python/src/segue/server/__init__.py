"""The server: `Server`, the context of its handlers, and related types."""

from .auth import AccessToken as AccessToken
from .auth import BearerAuth as BearerAuth
from .auth import Peer as Peer
from .completion import Complete as Complete
from .context import Context as Context
from .context import Resumed as Resumed
from .context import SyncContext as SyncContext
from .depends import Depends as Depends
from .headers import Headers as Headers
from .layers import Call as Call
from .layers import Middleware as Middleware
from .layers import Proceed as Proceed
from .lists import Listed as Listed
from .server import Server as Server
from .serving import Serving as Serving
from .session import ServerSession as ServerSession
from .stores import Store as Store
from .tool import ToolAnnotations as ToolAnnotations

__all__ = [
    "AccessToken",
    "BearerAuth",
    "Call",
    "Complete",
    "Context",
    "Depends",
    "Headers",
    "Listed",
    "Middleware",
    "Peer",
    "Proceed",
    "Resumed",
    "Server",
    "ServerSession",
    "Serving",
    "Store",
    "SyncContext",
    "ToolAnnotations",
]
