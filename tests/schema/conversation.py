"""Follows a conversation: which request a response answers, and in which revision."""
import copy
import json

import rules

MODERN = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
OTHER = {"client": "server", "server": "client"}


def key_of(value):
    """Ids are compared with their type: 1 is not "1", but 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


class Message:
    """A message, and what was found out about it once."""

    def __init__(self, value):
        self.value = value
        self.key = key_of(value.get("id"))
        self.params = value.get("params") if isinstance(value.get("params"), dict) else {}
        self.kind = self._kind(value)
        self.result = value.get("result") if isinstance(value.get("result"), dict) else {}
        meta = self.params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        self.is_modern = VERSION_KEY in meta or SUBSCRIPTION_KEY in meta
        self.names_handshake = meta.get(VERSION_KEY) in HANDSHAKE
        self.shapes = {}  # shapes by revision, of the whole message and of the params

    @staticmethod
    def _kind(value):
        if "method" in value:
            if not isinstance(value["method"], str):
                return None
            return "request" if "id" in value else "notification"
        if ("result" in value) == ("error" in value):
            return None
        return "result" if "result" in value else "error"

    def again(self, key):
        """Returns the same message with another id."""
        other = copy.copy(self)
        other.key = key
        return other

    def with_id(self):
        """Returns the message as it was sent, for a report."""
        if "id" not in self.value:
            return self.value
        return self.value | {"id": json.loads(self.key)}


class Asked:
    """A request that was seen."""

    def __init__(self, message, version):
        self.message = message
        self.method, self.params = message.value["method"], message.params
        self.version = version

    def goes_on_after(self, message):
        """Returns whether the message answers this request and announces more."""
        result = message.result
        meta = result.get("_meta")
        task = self.params.get("task")
        modes = task.get("responseModes") if isinstance(task, dict) else None
        streams = isinstance(modes, list) and "streaming" in modes
        return (isinstance(meta, dict) and meta.get("hasMore") is True) or (
            streams and "isComplete" in result and not result["isComplete"]) or (
            streams and "task" in result and "partial-content" not in result)


class Conversation:
    def __init__(self, judge, test, judged, is_peer=False):
        self.judge, self.test, self.judged = judge, test, judged
        self.is_peer = is_peer  # both sides are programs, so no request is made up
        self.asked = {"client": {}, "server": {}}  # open requests, by id
        self.versions = {"client": set(), "server": set()}  # versions of their requests
        self.version = None  # version of the handshake
        self.answers = {}  # responses of the client to the server's requests, by id

    def say(self, who, message):
        """Returns the reasons why one side's message is invalid. A script's message is
        only noted.

        The message is a Message, or a value: an object, or a batch of them.
        """
        if isinstance(message, list):
            return [why for one in message for why in self.say(who, one)]
        is_judged = who in self.judged
        if isinstance(message, dict):
            message = Message(message)
        if not isinstance(message, Message):
            return ["not an object"] if is_judged else []
        if message.kind is None:
            return ["neither request, response nor notification"] if is_judged else []
        why = getattr(self, "_" + message.kind)(who, message, is_judged)
        return [f"{message.kind}: {why}"] if why else []

    def _version_of(self, message):
        # After a handshake a handshake version in _meta has no effect (R-C-14).
        if message.is_modern and not (message.names_handshake and self.version):
            return MODERN
        return self.version or (MODERN if message.value["method"] in
                                self.judge.revisions[MODERN].requests["client"]
                                else "2025-11-25")

    def _request(self, who, message, is_judged):
        version = self._version_of(message)
        if message.value["method"] == "initialize":
            version = "2025-11-25"
        asked = Asked(message, version)
        if asked.method == "requests/resume":
            first = self.judge.first_asked(self.test, message.key)
            asked = Asked(first.message, version) if first else asked
        self.asked[who].setdefault(message.key, []).append(asked)
        # later messages use the version that both agree on
        if asked.method != "initialize":
            self.versions[who].add(version)
        self.judge.remember(self.test, message.key, asked)
        if is_judged:
            return self.judge.look(version, "request", (who,), message)
        return None

    def _notification(self, who, message, is_judged):
        if not is_judged:
            return None
        # Without a version in it the message belongs to the handshake, or to a request
        # of either side.
        versions = {MODERN} if message.is_modern else (
            self.versions["client"] | self.versions["server"] | {self.version} - {None})
        versions = versions or {MODERN, "2025-11-25"}
        whys = [self.judge.look(version, "notification", (who,), message)
                for version in sorted(versions, reverse=True)]
        return None if None in whys else whys[0]

    def _candidates(self, who, message):
        """Returns the requests that this may answer: a script may reuse an id."""
        return self.asked[OTHER[who]].get(message.key, [])

    def _result(self, who, message, is_judged):
        candidates = self._candidates(who, message)
        first = None  # the reason why it does not fit the first of them
        for asked in list(candidates):
            why = self._reason(asked, OTHER[who], message) if is_judged else None
            if why is None:
                self._settle(candidates, asked, message)
                if who == "client":
                    self.answers[message.key] = message.value
                return None
            first = first or why
        if not candidates:
            # Over HTTP a message that may not have arrived is sent again, word for
            # word.
            again = who == "client" and self.answers.get(message.key) == message.value
            return ("answers no request that waits for it"
                    if is_judged and not again else None)
        self._settle(candidates, candidates[0], message)
        return first

    def _reason(self, asked, asker, message):
        version = asked.version
        if asked.method == "initialize":
            version = message.result.get("protocolVersion", version)
        return self.judge.look(version, "result", (asker, asked.method), message,
                               asked.message)

    def _settle(self, candidates, asked, message):
        if not asked.goes_on_after(message):
            candidates.remove(asked)
        if asked.method == "initialize":
            version = message.result.get("protocolVersion")
            self.version = version if isinstance(version, str) else None

    def _error(self, who, message, is_judged):
        candidates = self._candidates(who, message)
        version = candidates[0].version if candidates else self.version or MODERN
        if candidates:
            candidates.pop(0)
        elif is_judged and self.is_peer and message.value.get("id") is not None:
            return "answers no request that waits for it"
        if is_judged:
            return self.judge.look(version, "error", (), message)
        return None


class Judge:
    """Checks each shape of a message once."""

    def __init__(self):
        self.revisions = rules.load()
        self.numbers = {}  # numbers of shapes
        self.seen = {}  # checked: reason
        self.kinds = {}  # messages checked: count
        self.first = {}

    def forget(self):
        """Forgets the counts so far, which belong to a self-check."""
        self.seen.clear()
        self.kinds.clear()
        self.first.clear()

    def remember(self, test, key, asked):
        self.first.setdefault((test, key), asked)

    def first_asked(self, test, key):
        return self.first.get((test, key))

    def _shape(self, revision, message, of):
        """Returns the number of the shape of a message ("value") or of its params."""
        number = message.shapes.get((revision.name, of))
        if number is None:
            shape = revision.shape(getattr(message, of))
            number = self.numbers.setdefault(shape, len(self.numbers))
            message.shapes[revision.name, of] = number
        return number

    def look(self, version, kind, about, message, asked=None):
        """Returns why a message is invalid. about: who sent it, or who asked and with
        which method."""
        what = message.value.get("method") or about[1:] and about[1] or ""
        self.kinds[version, kind, what] = self.kinds.get((version, kind, what), 0) + 1
        revision = self.revisions.get(rules.AS_IF.get(version, version))
        if revision is None:
            return f"there is no schema of revision {version!r}"
        shape = (revision.name, kind, about, self._shape(revision, message, "value"),
                 asked and self._shape(revision, asked, "params"))
        if shape not in self.seen:
            more = (asked.params,) if asked else ()
            self.seen[shape] = getattr(revision, kind)(*about, *more, message.value)
        return self.seen[shape]
