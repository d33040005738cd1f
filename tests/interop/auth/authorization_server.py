"""An authorization server on the handlers of the Python SDK: metadata, registration,
codes with PKCE, refresh. Every caller is the user "judge", who always agrees. Access
tokens are JWT (RFC 9068) for the requested resource and live one minute; the keys are
at jwks.json. Prints its issuer in the form that tokens and metadata use."""
import secrets
import socket
import time

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server.auth.provider import (
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

TOKEN_SECONDS = 60
SCOPES = ["mcp", "more"]


class Provider:
    def __init__(self, issuer):
        self.issuer = issuer
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.clients, self.codes, self.refreshes = {}, {}, {}

    def keys(self):
        algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
        key = algorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**key, "kid": "one", "alg": "ES256", "use": "sig"}]}

    def sign(self, client, scopes, resource):
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "judge", "aud": resource, "iat": now,
                  "exp": now + TOKEN_SECONDS, "jti": secrets.token_hex(8),
                  "client_id": client.client_id, "scope": " ".join(scopes)}
        return jwt.encode(claims, self.key, algorithm="ES256",
                          headers={"kid": "one", "typ": "at+jwt"})

    def tokens(self, client, scopes, resource):
        refresh = RefreshToken(token=secrets.token_hex(16), client_id=client.client_id,
                               scopes=scopes, resource=resource)
        self.refreshes[refresh.token] = refresh
        return OAuthToken(access_token=self.sign(client, scopes, resource),
                          expires_in=TOKEN_SECONDS, scope=" ".join(scopes),
                          refresh_token=refresh.token)

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_hex(16), scopes=params.scopes or ["mcp"],
            expires_at=time.time() + TOKEN_SECONDS, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource)
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code,
                                      state=params.state, iss=self.issuer)

    async def load_authorization_code(self, _, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.tokens(client, code.scopes, code.resource)

    async def load_refresh_token(self, _, token):
        return self.refreshes.get(token)

    async def exchange_refresh_token(self, client, refresh, scopes):
        del self.refreshes[refresh.token]
        return self.tokens(client, scopes or refresh.scopes, refresh.resource)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    issuer = AnyHttpUrl(f"http://127.0.0.1:{listener.getsockname()[1]}")
    provider = Provider(str(issuer))

    async def keys(_):
        return JSONResponse(provider.keys())

    registration = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES,
                                             default_scopes=["mcp"])
    routes = create_auth_routes(provider, issuer,
                                client_registration_options=registration)
    app = Starlette(routes=[*routes, Route("/jwks.json", keys)])
    print(issuer, flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


main()
