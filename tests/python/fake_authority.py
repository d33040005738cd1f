"""A server that requires a token and its authorization server, in one: a small HTTP
server on this machine for tests of a client. Its user always agrees."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

_TASKS = "io.modelcontextprotocol/tasks"
_TASK = {
    "taskId": "T",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": None,
    "pollIntervalMs": 10,
}
_OK, _MISSING = "200 OK", "404 Not Found"


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Authority:
    """Both servers; `url` is the endpoint of the first.

    Attributes:
        tokens: The access tokens that are accepted.
        headers: Headers of the last request to the endpoint.
        grants: The grants that tokens were requested with, in order.
        busy: How many token requests get an error first.
        is_silent: Requests with an accepted token get no answer.
        is_done: The task that a tool of the server makes has ended.
    """

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.headers: dict[str, str] = {}
        self.grants: list[str] = []
        self.busy = 0
        self.is_silent = False
        self.is_done = False
        self._codes: dict[str, dict[str, str]] = {}

    async def __aenter__(self) -> Authority:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.issuer = f"http://127.0.0.1:{port}"
        self.url = f"{self.issuer}/mcp"
        self._writers: set[asyncio.StreamWriter] = set()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await asyncio.sleep(0)

    def agree(self, url: str) -> str:
        """Agrees as the user at this URL; returns the URL of the redirect."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)
        try:
            opener.open(url)
        except urllib.error.HTTPError as answer:
            with answer:
                return str(answer.headers["Location"])
        raise AssertionError("nobody was sent back")

    # ---- HTTP

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = first.split(" ")
                if self.is_silent and self._may_enter(headers):
                    await reader.read()
                    return
                status, more, answer = self._answer(method, target, headers, body)
                raw = json.dumps(answer).encode() if answer is not None else b""
                told = [f"HTTP/1.1 {status}", "Content-Type: application/json"]
                told += [f"Content-Length: {len(raw)}", *more, "", ""]
                writer.write("\r\n".join(told).encode() + raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[str, list[str], Any]:
        parts = urlsplit(target)
        fields = {k: v[0] for k, v in parse_qs(parts.query or body.decode()).items()}
        if parts.path == "/mcp":
            return self._endpoint(method, headers, body)
        if parts.path.startswith("/.well-known/oauth-protected-resource"):
            told = {"resource": self.url, "authorization_servers": [self.issuer]}
            return _OK, [], told
        if parts.path == "/.well-known/oauth-authorization-server":
            return _OK, [], self._metadata()
        if parts.path == "/register":
            return "201 Created", [], {**json.loads(body), "client_id": "registered"}
        if parts.path == "/authorize":
            code = secrets.token_urlsafe(8)
            self._codes[code] = fields
            back = {"code": code, "state": fields["state"], "iss": self.issuer}
            location = f"{fields['redirect_uri']}?{urlencode(back)}"
            return "302 Found", [f"Location: {location}"], None
        if parts.path == "/token":
            if self.busy > 0:
                self.busy -= 1
                return "503 Service Unavailable", [], None
            return self._token(fields)
        return _MISSING, [], None

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _token(self, fields: dict[str, str]) -> tuple[str, list[str], Any]:
        self.grants.append(fields["grant_type"])
        if fields["grant_type"] == "authorization_code":
            asked = self._codes.pop(fields["code"])
            digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            assert challenge == asked["code_challenge"]
            assert fields["redirect_uri"] == asked["redirect_uri"]
        else:
            assert fields["client_secret"] == "secret-of-me"
        token = secrets.token_urlsafe(8)
        self.tokens.add(token)
        return _OK, [], {"access_token": token, "token_type": "Bearer", "expires_in": 600}

    # ---- the endpoint

    def _may_enter(self, headers: dict[str, str]) -> bool:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        return token in self.tokens

    def _endpoint(
        self, method: str, headers: dict[str, str], body: bytes
    ) -> tuple[str, list[str], Any]:
        self.headers = headers
        if not self._may_enter(headers):
            where = f"{self.issuer}/.well-known/oauth-protected-resource/mcp"
            why = 'error="invalid_token", error_description="It has expired"'
            challenge = f'WWW-Authenticate: Bearer {why}, resource_metadata="{where}"'
            return "401 Unauthorized", [challenge], None
        if method != "POST":
            return "405 Method Not Allowed", [], None
        asked = json.loads(body)
        info = {"name": "guarded", "version": "1"}
        result = {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {_TASKS: {}}},
            "serverInfo": info,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        if asked["method"] == "server/discover":
            result["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
        if asked["method"] == "tools/list":
            result["tools"] = [{"name": "t", "inputSchema": {"type": "object"}}]
        if asked["method"] == "tools/call":
            result = {"resultType": "task", **_TASK, "status": "working"}
        if asked["method"] == "tasks/get":
            result = {"resultType": "complete", **_TASK, "status": "working"}
            if self.is_done:
                result |= {"status": "completed", "result": {"content": []}}
        return _OK, [], {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}
