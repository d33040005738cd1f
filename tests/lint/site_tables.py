"""What the reference of the site says by hand is complete.

Each status and each reason has its cause and cure (core/docs/site/make/errors.json). The
page finds the class of each status, and Node has a class of the same name. Each key that
the library puts on the wire has its meaning (core/docs/site/make/wire.json)."""

import json
import re
import sys

import lint

sys.path.insert(0, str(lint.ROOT / "core/docs/site/make"))
import tables as site  # noqa: E402

ERRORS = "core/docs/site/make/errors.json"
WIRE = "core/docs/site/make/wire.json"
REASON = re.compile(r'^SGI_REASON\(SEGUE_\w+, "(\w+)"', re.M)
KEY = re.compile(
    r'"((?:dev\.segue|io\.modelcontextprotocol)/[A-Za-z-]+|dev\.segue\.[a-z.]+)(?:\\?")')
HEADER = re.compile(r'"(Dev-Segue-[A-Za-z-]+)"')
# Names that are no keys of messages: domains of sealed texts, and names in stores.
INSIDE = {"dev.segue/mailbox", "dev.segue/relay", "dev.segue/seal-key"}


def differences(where, have, want):
    return ([f"{where}: says nothing of {name}" for name in sorted(want - have)] +
            [f"{where}: there is no {name}" for name in sorted(have - want)])


def keys_in_code():
    """Returns the keys and the library's own headers of HTTP."""
    text = "".join(lint.read(path) for path in lint.files("core/**/*.[ch]"))
    return set(KEY.findall(text)) - INSIDE, set(HEADER.findall(text))


def classes(found, node):
    """Returns what the classes of the statuses lack."""
    values = {int(row[0]) for row in lint.error_table().values()} - {0}
    return ([f"errors.py: no class of status {value}" for value in values - set(found)] +
            [f"errors.ts: no class {name}" for name in found.values()
             if f"export class {name} " not in node])


def main():
    lint.expect(differences("x", {"a"}, {"b"}), "a difference was let pass")
    lint.expect(KEY.findall('"dev.segue/a" \\"dev.segue/b\\"'), "keys are not found")
    lint.expect(classes({}, ""), "statuses without a class were let pass")
    lint.expect(classes({-1: "OtherError"}, ""), "a class that Node lacks was let pass")
    told = json.loads(lint.read(ERRORS))
    statuses = set(lint.error_table()) - {"SEGUE_OK"}
    findings = differences(ERRORS, set(told["statuses"]), statuses)
    reasons = set(REASON.findall(lint.read("core/api/reasons.def")))
    findings += differences(ERRORS, set(told["reasons"]), reasons)
    findings += [f"{ERRORS}: {name}: not a cause and a cure"
                 for name, pair in told["statuses"].items()
                 if len(pair) != 2 or not all(one.endswith(".") for one in pair)]
    findings += classes(site.classes(), lint.read("node/src/errors.ts"))
    tables = json.loads(lint.read(WIRE))["tables"]
    keys = {row[0] for name, rows in tables.items() if name != "Headers of HTTP"
            for row in rows}
    used, headers = keys_in_code()
    own = {row[0] for row in tables["Headers of HTTP"] if row[0].startswith("Dev-")}
    findings += differences(WIRE, keys, used) + differences(WIRE, own, headers)
    lint.finish(findings, f"{len(statuses) + len(reasons) + len(keys)} entries")


main()
