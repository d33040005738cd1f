#!/usr/bin/env python3
"""The fixture client of client.c, on the Python SDK: one program for all scenarios of
the suite. MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_CONTEXT is JSON
with its data, and the last argument is the server's URL. The client goes through

    lists, page by page --> one call after the other --> the end

A call that asks waits until all others were made, so that the parts of one call show up
in no other. The status is 0 when everything succeeded. The python3 of PATH must have
the package.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import segue

# The suite gives up after 30 s, but does not end the program that it has started.
LIFE_SECONDS = 28
# The suite starts all servers and clients at once, and on a busy machine takes seconds
# to get to all. So a silent server is not taken for an old one here.
PROBE_SECONDS = 25
# The suite knows this URL; it need not be readable.
METADATA_URL = "https://conformance-test.local/client-metadata.json"
DEPTH_MOST = 16


# ---- values that fit a schema, as far as the suite's schemas need it


def object_for(schema: Any, without_defaults: bool = False, depth: int = 0) -> Any:
    """Makes the required members of an object."""
    schema = schema if isinstance(schema, dict) else {}
    properties = schema.get("properties") or {}
    return {
        name: value_for(properties.get(name), depth + 1)
        for name in schema.get("required") or []
        if not (without_defaults and "default" in (properties.get(name) or {}))
    }


def value_for(schema: Any, depth: int) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    if schema.get("enum"):
        return schema["enum"][0]
    if depth > DEPTH_MOST:
        return "text"
    made: dict[Any, Any] = {
        "number": 2 + depth,
        "integer": 2 + depth,
        "boolean": True,
        "null": None,
        "array": [],
    }
    kind = schema.get("type")
    if kind == "object":
        return object_for(schema, False, depth)
    return made.get(kind, "text") if isinstance(kind, str) else "text"


# ---- one call


class Call:
    """A call in play. It answers its questions when the play lets it."""

    def __init__(self, session: segue.Session, name: str, arguments: Any) -> None:
        self.asks = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.work = asyncio.ensure_future(
            session.call(name, arguments, on_input=self._answer)
        )

    async def rest(self) -> None:
        """Waits until the call has ended, or asks."""
        asking = asyncio.ensure_future(self.asks.wait())
        await asyncio.wait((self.work, asking), return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()

    async def _answer(self, question: segue.Question) -> Any:
        self.asks.set()
        await self.may_answer.wait()
        if question.method == "roots/list":
            return {"roots": []}
        if question.method == "sampling/createMessage":
            block = {"type": "text", "text": "said by a model"}
            return segue.SampleResult("assistant", block, "none", "endTurn")
        if question.params.get("mode") == "url":
            return segue.ElicitResult("accept")
        schema = question.params.get("requestedSchema")
        # members with a default are left to the library
        return segue.ElicitResult("accept", object_for(schema, without_defaults=True))


# ---- the play


class Play:
    def __init__(self, scenario: str, context: Any) -> None:
        self.scenario = scenario
        self.context = context
        self.failed = False

    def fail(self, what: str, why: object) -> None:
        print(f"client: {what}: {why}", file=sys.stderr)
        self.failed = True

    async def attempt(self, what: str, work: Any) -> Any:
        try:
            return await work
        except segue.Error as error:
            self.fail(what, error)
            return []

    async def play(self, session: segue.Session) -> None:
        tools = await self.attempt("tools/list", session.list_tools())
        can = session.peer.capabilities
        if "resources" in can:
            found = await self.attempt("resources/list", session.list_resources())
            for resource in found:
                await self.attempt("resources/read", session.read_resource(resource.uri))
        if "prompts" in can:
            for prompt in await self.attempt("prompts/list", session.list_prompts()):
                arguments = {a.name: "text" for a in prompt.arguments if a.required}
                made = session.get_prompt(prompt.name, arguments)
                await self.attempt("prompts/get", made)
        await self.calls(session, tools)

    async def calls(self, session: segue.Session, tools: list[segue.Tool]) -> None:
        running = []
        for name, arguments in self.planned(tools):
            call = Call(session, name, arguments)
            running.append(call)
            await call.rest()
        for call in running:
            call.may_answer.set()
            await self.attempt("tools/call", call.work)

    def planned(self, tools: list[segue.Tool]) -> list[tuple[str, Any]]:
        """The calls that the suite wants, or one call of each tool."""
        if self.scenario == "json-schema-ref-no-deref":
            return []  # its tool is only listed
        wanted = self.context.get("toolCalls")
        if wanted is not None:
            return [(one["name"], one.get("arguments") or {}) for one in wanted]
        schemas = {tool.name: tool.input_schema for tool in tools}
        planned = []
        for tool in tools:
            arguments = object_for(tool.input_schema)
            seen = schemas.get("json_schema_2020_12_tool")
            if tool.name == "json_schema_echo" and seen is not None:
                # this tool wants its schema as the client received it
                arguments["schema"] = seen
            planned.append((tool.name, arguments))
        return planned


# ---- the identity of the client for an authorization server


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)


def location_of(url: str) -> str:
    """Returns where a browser is redirected to from this URL."""
    try:
        _direct.open(url, timeout=10).close()
    except urllib.error.HTTPError as answer:
        with answer:
            return str(answer.headers["Location"])
    raise OSError("the server did not send it back")


async def browse(url: str) -> None:
    segue.authorize(await asyncio.to_thread(location_of, url))


def oauth_of(scenario: str, context: Any) -> segue.OAuth | None:
    if not scenario.startswith("auth/"):
        return None

    def assertion(issuer: str, resource: str) -> str | None:
        """Token exchange (RFC 8693): exchanges the user's ID token for an assertion
        that this authorization server accepts. It blocks, because there is nothing else
        to do meanwhile."""
        if "valid_jwt" in context:
            return str(context["valid_jwt"])
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token": context.get("idp_id_token", ""),
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "client_id": context.get("idp_client_id", ""),
            "audience": issuer,
            "resource": resource,
        }
        data = urllib.parse.urlencode(form).encode()
        with _direct.open(context["idp_token_endpoint"], data, timeout=10) as answer:
            return str(json.load(answer)["access_token"])

    name = scenario.removeprefix("auth/")
    by_assertion = name.startswith(("wif", "enterprise", "cross-app"))
    is_client = name.startswith("client-credentials")
    return segue.OAuth(
        grant="assertion" if by_assertion else "client" if is_client else "code",
        client_name="segue-conformance",
        redirect_uri="http://localhost:3000/callback",
        client_metadata_url=METADATA_URL,
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        private_key=context.get("private_key_pem"),
        open_browser=browse,
        assertion=assertion if by_assertion else None,
    )


async def main() -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    play = Play(scenario, context)
    try:
        async with segue.connect(
            sys.argv[-1],
            name="segue-conformance",
            version=segue.__version__,
            auth=oauth_of(scenario, context),
            capabilities={"elicitation": {}, "sampling": {}, "roots": {}},
            fill_defaults=True,
            probe_timeout=PROBE_SECONDS,
            connect_timeout=LIFE_SECONDS,
            connect_attempts=20,
        ) as session:
            await play.play(session)
    except segue.Error as error:
        play.fail("session", error)
    return int(play.failed)


if __name__ == "__main__":
    signal.alarm(LIFE_SECONDS)
    sys.exit(asyncio.run(main()))
