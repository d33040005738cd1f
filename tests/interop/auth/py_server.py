"""A server on the Python SDK that requires tokens of an issuer.  py_server.py ISSUER
Prints its URL."""
import socket
import sys
import warnings

import jwt
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

warnings.simplefilter("ignore")
ISSUER = sys.argv[1]
LISTENER = socket.create_server(("127.0.0.1", 0))
URL = f"http://127.0.0.1:{LISTENER.getsockname()[1]}/mcp"


class Verifier:
    keys = jwt.PyJWKClient(ISSUER + "jwks.json")

    async def verify_token(self, token):
        try:
            key = self.keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, algorithms=["ES256"], issuer=ISSUER,
                                audience=URL)
        except jwt.PyJWTError:
            return None
        return AccessToken(token=token, client_id=claims["client_id"], resource=URL,
                           scopes=claims["scope"].split(), expires_at=claims["exp"])


server = MCPServer(
    "judged", version="1.0.0", log_level="ERROR", token_verifier=Verifier(),
    auth=AuthSettings(issuer_url=ISSUER, resource_server_url=URL,
                      required_scopes=["mcp"], validate_token_resource=True))


@server.tool()
def greet(name: str = "World") -> str:
    return f"Hello, {name}!"


print(URL, flush=True)
config = uvicorn.Config(server.streamable_http_app(), log_level="error",
                        timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[LISTENER])
