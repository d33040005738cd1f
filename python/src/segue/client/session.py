"""A client's session with one server. The session lasts over all reconnects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from .. import _segue, errors
from ..schema import encode
from . import items
from .calls import Calls
from .changes import Changes, Kind
from .conversation import LEVELS

__all__ = ["Session"]

Reference = items.Prompt | items.ResourceTemplate | Mapping[str, Any] | str

# maximum number of pages of one list
MOST_PAGES = 10_000


class Session(Calls):
    """A session with a server; made by `segue.connect`.

    A session belongs to the event loop in which it was made. Many calls may run at the
    same time. When the connection breaks, the session makes a new connection. Tasks and
    streams continue after the last segment that arrived. Calls that the server can
    recognise by their idempotency key are sent again. All other calls end with
    `DisconnectedError`.

    Attributes:
        peer: The server's description of itself at the last connection.
        connections: How many times the session has connected.
    """

    # ---- lists

    async def _pages(self, method: str, kind: Any) -> AsyncIterator[Any]:
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            params = None if cursor is None else {"cursor": cursor}
            page = items.decode(await self.request_raw(method, params), kind, method)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                break
            seen.add(cursor)
        raise errors.ProtocolError(
            f"{method}: the server sent more pages than the limit, or sent one page twice"
        )

    async def list_tools(self) -> list[items.Tool]:
        """Lists all tools, from all pages.

        Raises:
            RemoteError: The server has no tools at all (-32601).
            ProtocolError: The answer is not a valid list of tools.
        """
        pages = self._pages("tools/list", items.ToolsPage)
        return [one async for page in pages for one in page.tools]

    async def list_resources(self) -> list[items.Resource]:
        """Lists all resources. Raises the same errors as `list_tools`."""
        pages = self._pages("resources/list", items.ResourcesPage)
        return [one async for page in pages for one in page.resources]

    async def list_resource_templates(self) -> list[items.ResourceTemplate]:
        """Lists all templates of resources. Raises the same errors as `list_tools`."""
        pages = self._pages("resources/templates/list", items.TemplatesPage)
        return [one async for page in pages for one in page.resource_templates]

    async def list_prompts(self) -> list[items.Prompt]:
        """Lists all prompts. Raises the same errors as `list_tools`."""
        pages = self._pages("prompts/list", items.PromptsPage)
        return [one async for page in pages for one in page.prompts]

    # ---- resources, prompts, completion

    async def read_resource(
        self, uri: str, *, meta: Mapping[str, Any] | None = None
    ) -> items.ReadResult:
        """Reads a resource.

        Args:
            uri: URI of the resource.
            meta: Members of `_meta`.

        Raises:
            RemoteError: The resource does not exist (-32002) or cannot be read.
        """
        raw = await self.request_raw("resources/read", _with_meta({"uri": uri}, meta))
        result: items.ReadResult = items.decode(raw, items.ReadResult, "resources/read")
        return result

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> items.PromptResult:
        """Gets the messages of a prompt: `get_prompt("plan", city="Oslo", days=4)`.

        The arguments of a prompt are strings. Any other value is sent as its JSON text,
        so 4 is sent as "4".

        Args:
            name: Name of the prompt.
            meta: Members of `_meta`.
            arguments: Further arguments, for names that cannot be keywords.

        Raises:
            RemoteError: The prompt does not exist, or an argument is missing (-32602).
        """
        params: dict[str, Any] = {"name": name}
        given = {**(arguments or {}), **more}
        if given:
            params["arguments"] = {
                key: value if isinstance(value, str) else encode(value).decode()
                for key, value in given.items()
            }
        return items.read_prompt(
            await self.request_raw("prompts/get", _with_meta(params, meta))
        )

    async def complete(
        self,
        of: Reference,
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
    ) -> items.Completion:
        """Suggests values for an argument of a prompt or of a template.

        Args:
            of: A `Prompt`, a `ResourceTemplate`, the text of a template (it has a brace),
                or the name of a prompt.
            argument: The argument's name.
            value: What the user has typed so far.
            context: Values of the other arguments.

        Raises:
            RemoteError: The prompt or template does not exist (-32602), or the server
                offers no completion (-32601).
        """
        params: dict[str, Any] = {
            "ref": _reference(of),
            "argument": {"name": argument, "value": value},
        }
        if context:
            params["context"] = {"arguments": dict(context)}
        raw = await self.request_raw("completion/complete", params)
        answer: items.CompletionAnswer = items.decode(
            raw, items.CompletionAnswer, "completion/complete"
        )
        return answer.completion

    # ---- changes

    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        resources: bool = False,
        prompts: bool = False,
    ) -> Changes:
        """Subscribes to changes of resources or lists. The subscription begins at `async
        with`; see `Changes`.

        Args:
            uris: The URIs of resources.
            tools, resources, prompts: True = subscribe to this list.
        """
        asked: dict[Kind, bool] = {
            "tools": tools,
            "resources": resources,
            "prompts": prompts,
        }
        return Changes(self, uris, [name for name, wanted in asked.items() if wanted])

    # ---- the rest

    async def ping(self) -> None:
        """Sends a ping to the server and waits for its answer.

        Revision 2026-07-28 has no `ping`, so a client of this revision sends
        `server/discover` instead.
        """
        is_modern = self.peer.era == "modern"
        await self.request_raw("server/discover" if is_modern else "ping", no_cache=True)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification, for example `notifications/roots/list_changed`.

        The server may miss it when the connection breaks.

        Args:
            method: The method.
            params: The params, a JSON object.

        Raises:
            StateError: The connection is lost at present.
        """
        text = None if params is None else msgspec.json.encode(dict(params))
        _segue.session_notify(self.handle, method, text)

    async def set_log_level(self, level: str) -> None:
        """Asks the server for log messages from this level on. `on_log` receives them.

        Raises:
            ValueError: There is no such level.
            RemoteError: The server does not log (before 2026-07-28).
        """
        if level not in LEVELS:
            raise ValueError(
                f"unknown log level: {level!r}; the log levels are {', '.join(LEVELS)}"
            )
        if self.peer.era == "legacy":
            await self.request_raw("logging/setLevel", {"level": level})
        self._log_level = level


def _with_meta(params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    if meta:
        params["_meta"] = meta
    return params


def _reference(of: Reference) -> Mapping[str, Any]:
    if isinstance(of, items.Prompt):
        return {"type": "ref/prompt", "name": of.name}
    if isinstance(of, items.ResourceTemplate):
        return {"type": "ref/resource", "uri": of.uri_template}
    if isinstance(of, str):
        if "{" in of:
            return {"type": "ref/resource", "uri": of}
        return {"type": "ref/prompt", "name": of}
    return of
