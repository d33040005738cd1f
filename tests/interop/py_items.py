"""Cells for py_client.py: the Python SDK's client with the resources, prompts,
completions and questions of Segue's server."""
import base64
import json

from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)

from cells import equal, rejection, until

ANSWERS = {"Your name?": {"name": "Ada"}, "Are you sure?": {"confirm": True},
           "Name?": {}, "What context?": {"context": "here"}}
UPDATED = "notifications/resources/updated"
CHANGED = {f"notifications/{items}/list_changed" for items in ("resources", "prompts")}


class Asked:
    """Answers the server's questions."""

    def __init__(self):
        self.messages = []
        self.action = "accept"

    async def elicit(self, _, params):
        self.messages.append(params.message)
        return ElicitResult(action=self.action, content=ANSWERS[params.message]
                            if self.action == "accept" else None)

    async def sample(self, _, params):
        content = params.messages[0].content
        said = (content[0] if isinstance(content, list) else content).text + "!"
        return CreateMessageResult(role="assistant", model="judge",
                                   content=TextContent(type="text", text=said))

    async def list_roots(self, _):
        return ListRootsResult(roots=[Root(uri="file:///judged", name="judged")])

    @property
    def options(self):
        """Returns the client's options."""
        return {"elicitation_callback": self.elicit, "sampling_callback": self.sample,
                "list_roots_callback": self.list_roots}


async def every_page(fetch, member):
    items, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = await fetch(cursor=cursor)
        items += getattr(page, member)
        cursor, pages = page.next_cursor, pages + 1
    return items


def add_cells(cells, client, asked, notes, modern):
    """client: returns it once it is connected; notes: methods of notifications."""

    async def call(tool):
        return (await client().call_tool(tool, {})).content[0].text

    async def ask(tool):
        asked.messages.clear()
        return await call(tool)

    add_resources(cells, client, modern)
    add_prompts(cells, client)
    add_changes(cells, client, call, notes, modern)
    add_questions(cells, client, asked, ask)


def add_resources(cells, client, modern):
    async def read(uri):
        return (await client().read_resource(uri)).contents

    @cells.add("resources/list")
    async def _():
        resources = await every_page(client().list_resources, "resources")
        known = {resource.name: resource for resource in resources}["static-text"]
        equal([known.uri, known.mime_type], ["test://static-text", "text/plain"])
        equal(len(resources) > 4, True, "more than one page")

    @cells.add("resources/templates/list")
    async def _():
        templates = (await client().list_resource_templates()).resource_templates
        equal(sorted(template.name for template in templates), ["files", "template"])

    @cells.add("resources/read: text and blob")
    async def _():
        [text] = await read("test://static-text")
        equal(text.text, "This is the content of the static text resource.")
        [blob] = await read("test://static-binary")
        equal([blob.mime_type, base64.b64decode(blob.blob)], ["image/png", b"\x89PNG\0"])

    @cells.add("resources/read: several contents")
    async def _():
        parts = await read("test://many")
        equal([getattr(part, "text", None) or base64.b64decode(part.blob).decode()
               for part in parts], ["a", "b", "c"])

    @cells.add("resources/read: by a template")
    async def _():
        [part] = await read("test://template/%C3%A9%2F7/data")
        equal(json.loads(part.text)["id"], "é/7")

    @cells.add("resources/read: not found")
    async def _():
        error = (await rejection(read("test://nowhere"))).error
        equal([error.code, error.data],
              [-32602 if modern else -32002, {"uri": "test://nowhere"}])


def add_prompts(cells, client):
    @cells.add("prompts/list")
    async def _():
        prompts = await every_page(client().list_prompts, "prompts")
        given = {prompt.name: prompt.arguments for prompt in prompts}["arguments"]
        equal([(argument.name, bool(argument.required)) for argument in given],
              [("arg1", True), ("arg2", False)])

    @cells.add("prompts/get: arguments")
    async def _():
        got = await client().get_prompt("arguments", {"arg1": "x", "arg2": "y"})
        equal([(message.role, message.content.text) for message in got.messages],
              [("user", "Prompt with arguments: arg1='x', arg2='y'")])

    @cells.add("prompts/get: image and resource")
    async def _():
        messages = (await client().get_prompt("blocks")).messages
        equal([(message.role, message.content.type) for message in messages],
              [("user", "resource"), ("user", "image"), ("assistant", "text"),
               ("assistant", "text")])
        equal(messages[0].content.resource.text, "Embedded.")
        equal(base64.b64decode(messages[1].content.data), b"png")

    @cells.add("prompts/get: unknown, and an argument is missing")
    async def _():
        for name in ("no-such-prompt", "arguments"):
            equal((await rejection(client().get_prompt(name))).error.code, -32602, name)

    @cells.add("completion/complete")
    async def _():
        async def complete(ref, name, value, **more):
            return (await client().complete(ref, {"name": name, "value": value},
                                            **more)).completion

        of_prompt = PromptReference(type="ref/prompt", name="arguments")
        equal(len((await complete(of_prompt, "arg1", "word-14")).values), 11)
        template = ResourceTemplateReference(type="ref/resource",
                                             uri="test://template/{id}/data")
        many = await complete(template, "id", "")
        equal([len(many.values), many.total, many.has_more], [100, 150, True])
        blocks = PromptReference(type="ref/prompt", name="blocks")
        told = await complete(blocks, "x", "", context_arguments={"language": "python"})
        equal(told.values, ["completion/complete", "blocks", "python"])


def add_changes(cells, client, call, notes, modern):
    @cells.add("a resource changes")
    async def _():
        uri = "test://static-text"
        if modern:
            async with client().listen(resource_subscriptions=[uri]) as subscription:
                equal(subscription.honored.resource_subscriptions, [uri])
                await call("update")
                event = await anext(subscription)
                equal([type(event).__name__, event.uri], ["ResourceUpdated", uri])
            await call("update")
        else:
            await client().subscribe_resource(uri)
            await call("update")
            await until(lambda: UPDATED in notes, "the notification")
            await client().unsubscribe_resource(uri)
            await call("update")
            await call("greet")
            equal(notes.count(UPDATED), 1, "notifications after the end")

    @cells.add("list_changed: resources and prompts")
    async def _():
        if modern:
            async with client().listen(resources_list_changed=True,
                                       prompts_list_changed=True) as subscription:
                await call("toggle_items")
                seen = {type(await anext(subscription)).__name__ for _ in range(2)}
            equal(seen, {"ResourcesListChanged", "PromptsListChanged"})
        else:
            await call("toggle_items")
            await until(lambda: CHANGED <= set(notes), "both notifications")


def add_questions(cells, client, asked, ask):
    @cells.add("elicitation: form")
    async def _():
        equal(json.loads(await ask("ask_name")),
              {"action": "accept", "content": {"name": "Ada"}})
        equal(asked.messages, ["Your name?"])

    @cells.add("elicitation: declined")
    async def _():
        asked.action = "decline"
        try:
            equal(json.loads(await ask("ask_name")), {"action": "decline"})
        finally:
            asked.action = "accept"

    @cells.add("elicitation: two at once")
    async def _():
        said = await ask("ask_both")
        equal([sorted(asked.messages), said.count('"accept"')],
              [["Are you sure?", "Name?"], 2])

    @cells.add("elicitation: three in turn")
    async def _():
        equal(await ask("ask_rounds"), "asked 3 times")
        equal(len(asked.messages), 3)

    @cells.add("elicitation: for a prompt and a resource")
    async def _():
        wanted = {"action": "accept", "content": {"context": "here"}}
        got = await client().get_prompt("ask")
        equal(json.loads(got.messages[0].content.text), wanted)
        [part] = (await client().read_resource("test://ask")).contents
        equal(json.loads(part.text), wanted)

    @cells.add("sampling")
    async def _():
        said = json.loads(await ask("ask_model"))
        equal([said["role"], said["model"], said["content"]["text"]],
              ["assistant", "judge", "Say something.!"])

    @cells.add("roots")
    async def _():
        equal(json.loads(await ask("ask_roots")),
              {"roots": [{"uri": "file:///judged", "name": "judged"}]})
