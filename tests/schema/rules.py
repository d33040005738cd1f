"""The form of messages: the published schemas, extended by Segue's overlays.

An overlay is a JSON file in overlays/:

    {"about": "...", "revisions": ["2025-11-25"],
     "$defs": {...},                        further types; may refer to published ones
     "replaces": ["ContentBlock"],          of these the published ones that are
         replaced,
                                            and become PublishedContentBlock and so on
     "requests": {"client": {"tasks/stream": {"type": "TasksStreamRequest",
                                              "result": [RESULT, ...]}}},
     "notifications": {"server": {"notifications/tasks": "TaskNotification"}},
     "always": {"result": ["NoModernMembers"]}}

"client" or "server" is the sender. A RESULT is {"type": name}. It may have "when", a
schema of {"params", "result"} that tells whether this type is meant, and "asked", a
schema that the params must satisfy. The first RESULT whose "when" holds counts.
"always" lists types that every message of a kind satisfies beside its own: request,
result, notification, error. An entry for results may be a RESULT too.
"""
import json
import re
import warnings
from pathlib import Path

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import best_match

HERE = Path(__file__).resolve().parent
EMPTY_RESULTS = {"ping", "logging/setLevel", "resources/subscribe",
                 "resources/unsubscribe"}
# Handshake revisions without a schema of their own here; README.md says why this is
# valid.
AS_IF = {"2025-03-26": "2025-06-18", "2024-11-05": "2025-06-18"}
# A draft that was never published, and the schema that the overlays extend for it.
MADE_OF = {"DRAFT-2026-v1": "2025-11-25"}


class Revision:
    """One revision: the types of all its messages."""

    def __init__(self, name, overlays):
        self.name = name
        self.schema = json.loads(
            (HERE / "published" / f"{MADE_OF.get(name, name)}.json").read_text())
        self.key = "$defs" if "$defs" in self.schema else "definitions"
        self.types = self.schema[self.key]
        self.requests = {"client": {}, "server": {}}
        self.notifications = {"client": {}, "server": {}}
        self.always = {"request": [], "result": [], "notification": [], "error": []}
        self.validators = {}
        # methods of any revision: other methods belong to an application
        self.elsewhere = set()
        self._read_published()
        for overlay in overlays:
            if name in overlay["revisions"]:
                self._lay_over(overlay)
        self.names, self.patterns = set(), {}
        self._find_constants([self.types, self.requests])

    def _members(self, union):
        union = self.types.get(union, {})
        refs = union.get("anyOf", [union])
        for ref in refs:
            if "$ref" in ref:
                name = ref["$ref"].rsplit("/", 1)[1]
                yield name, self.types[name]
            elif "properties" in ref:  # a union with one member, written out
                method = ref["properties"]["method"]["const"]
                yield from ((name, type_) for name, type_ in self.types.items()
                            if type_.get("properties", {}).get("method", {})
                            .get("const") == method and not name.startswith("Client"))

    def _read_published(self):
        for who in ("client", "server"):
            for name, type_ in self._members(f"{who.capitalize()}Request"):
                method = type_["properties"]["method"]["const"]
                result = name.removesuffix("Request") + "Result"
                if method in EMPTY_RESULTS:
                    result = "EmptyResult"
                self.requests[who][method] = {"type": name, "result": [{"type": result}]}
            for name, type_ in self._members(f"{who.capitalize()}Notification"):
                method = type_["properties"]["method"]["const"]
                self.notifications[who][method] = name

    def _lay_over(self, overlay):
        replaced = overlay.get("replaces", [])
        for name, type_ in overlay.get("$defs", {}).items():
            if (name in self.types) != (name in replaced):
                raise ValueError(f"{overlay['file']}: {name} is or is not new")
            if name in replaced:
                self.types[f"Published{name}"] = self.types[name]
            self.types[name] = self._refs(type_)
        for who, methods in overlay.get("requests", {}).items():
            for method, rule in methods.items():
                # Members that an overlay does not name stay.
                self.requests[who].setdefault(method, {}).update(self._refs(rule))
        for who, methods in overlay.get("notifications", {}).items():
            self.notifications[who].update(methods)
        for kind, names in overlay.get("always", {}).items():
            self.always[kind] += names

    def _refs(self, part):
        """Overlays use $defs, whatever the revision calls its types."""
        text = json.dumps(part).replace('"#/$defs/', f'"#/{self.key}/')
        return json.loads(text)

    def _find_constants(self, part):
        """Finds the members whose exact text matters to a schema: it is part of a
        shape."""
        if isinstance(part, list):
            for one in part:
                self._find_constants(one)
        elif isinstance(part, dict):
            properties = part.get("properties", {})
            for name, schema in properties.items():
                if self._is_of_constants(schema):
                    self.names.add(name)
                for one in (schema, self._target(schema)):
                    if isinstance(one, dict) and "pattern" in one:
                        self.patterns.setdefault(name, set()).add(one["pattern"])
            for one in part.values():
                self._find_constants(one)

    def _target(self, schema):
        name = schema.get("$ref", "") if isinstance(schema, dict) else ""
        return self.types.get(name.rsplit("/", 1)[-1], {})

    def _is_of_constants(self, schema):
        if isinstance(schema, list):
            return any(map(self._is_of_constants, schema))
        if not isinstance(schema, dict):
            return False
        return bool({"const", "enum"} & (set(schema) | set(self._target(schema)))) or any(
            self._is_of_constants(schema.get(key)) for key in ("items", "contains", "not",
                                                               "anyOf", "oneOf", "allOf"))

    def validator(self, schema):
        """Returns the validator of a type by its name, or of a schema; it is made
        once."""
        key = schema if isinstance(schema, str) else json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            kind = Draft7Validator if self.key == "definitions" else Draft202012Validator
            root = schema
            if isinstance(schema, str):
                if schema not in self.types:
                    raise ValueError(f"{self.name} has no type {schema}")
                root = {"$ref": f"#/{self.key}/{schema}"}
            self.validators[key] = kind(
                {"allOf": [self._refs(root)], self.key: self.types})
        return self.validators[key]

    def reason(self, schema, value):
        """Returns why a value is not of this type; None when it is."""
        error = best_match(self.validator(schema).iter_errors(value))
        if error is None:
            return None
        where = error.json_path.removeprefix("$").removeprefix(".")
        name = schema if isinstance(schema, str) else "condition"
        return f"not a {name}: {where or 'it'}: {error.message[:300]}"

    # ---- messages ----

    def request(self, who, message):
        rule = self.requests[who].get(message["method"])
        if rule is None and who == "client" and message["method"] not in self.elsewhere:
            types = ["JSONRPCRequest"] + self.always["request"]
            return self._first_reason(types, message)
        if rule is None:
            return f"{self.name} has no request {message['method']} of a {who}"
        return self._first_reason([rule["type"]] + self.always["request"], message)

    def notification(self, who, message):
        name = self.notifications[who].get(message["method"])
        if name is None:
            return f"{self.name} has no notification {message['method']} of a {who}"
        return self._first_reason([name] + self.always["notification"], message)

    def error(self, message):
        return self._first_reason(["JSONRPCErrorResponse" if self.key == "$defs"
                                   else "JSONRPCError"] + self.always["error"], message)

    def result(self, asker, method, params, message):
        """Checks a result of a request that `asker` made."""
        rule = self.requests[asker].get(method)
        if rule is None:
            return f"{self.name} knows no result of {method}"
        result = message["result"]
        around = "JSONRPCResultResponse" if self.key == "$defs" else "JSONRPCResponse"
        if why := self.reason(around, message):
            return why
        if set(message) - {"jsonrpc", "id", "result"}:
            return "a response with more members than a response has"
        pair = {"params": params, "result": result}
        for choice in rule["result"]:
            if "when" in choice and self.reason(choice["when"], pair):
                continue
            if "asked" in choice and (why := self.reason(choice["asked"], params)):
                return f"a {choice['type']} to one who did not ask for it: {why}"
            why = self._first_reason([choice["type"]], result)
            return why or self._always(pair)
        return f"none of the results of {method}"

    def _always(self, pair):
        for choice in self.always["result"]:
            choice = {"type": choice} if isinstance(choice, str) else choice
            if "when" in choice and self.reason(choice["when"], pair):
                continue
            if "asked" in choice and self.reason(choice["asked"], pair["params"]):
                return f"a {choice['type']} to one who did not ask for it"
            if why := self.reason(choice["type"], pair["result"]):
                return why
        return None

    def _first_reason(self, types, value):
        return next((why for name in types if (why := self.reason(name, value))), None)

    # ---- shapes ----

    def shape(self, value, name=None):
        """Returns what a schema can see of a value: two messages of one shape are both
        valid or both not."""
        if isinstance(value, dict):
            return tuple((key, self.shape(value[key], key)) for key in sorted(value))
        if isinstance(value, list):
            kinds = {self.shape(one, name) for one in value}
            whole = len({json.dumps(one, sort_keys=True) for one in value}) == len(value)
            return ("[", min(len(value), 2), whole, tuple(sorted(kinds, key=repr)))
        if isinstance(value, str):
            if name in self.names and len(value) < 64:
                return value
            kinds = self.patterns.get(name, ())
            fits = tuple(bool(re.search(pattern, value)) for pattern in sorted(kinds))
            return ("s", bool(value), fits)
        if isinstance(value, (bool, type(None))):
            return repr(value)
        if name == "code":
            return value
        whole = float(value).is_integer() if abs(value) < 1e300 else False
        return ("n", whole, (value > 0) - (value < 0), value > 2 ** 53 - 1)


def load():
    """Loads all revisions, by name."""
    warnings.simplefilter("error")
    overlays = []
    for path in sorted((HERE / "overlays").glob("*.json")):
        overlays.append(json.loads(path.read_text()) | {"file": path.name})
    revisions = {name: Revision(name, overlays)
                 for name in ("2025-06-18", "2025-11-25", *MADE_OF, "2026-07-28")}
    methods = {method for one in revisions.values() for method in one.requests["client"]}
    for revision in revisions.values():
        revision.elsewhere = methods
    return revisions
