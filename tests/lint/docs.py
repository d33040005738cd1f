"""Every public function has a contract block that agrees with api.def.

A block stands right above its declaration, has 1 to 14 lines and opens with a sentence.
The head of segue.h states the defaults. So a block has a line Thread only when api.def
does not say ANY, Callback only when it does not say ALLOWED, and Since only after the
first version. The lines Returns, Thread, Callback and Since stand in this order, each
at most once. Statuses that a header names exist.
"""

import re

import lint

TAGS = ["Returns", "Thread", "Callback", "Since"]
DEFAULTS = {"Thread": "any", "Callback": "allowed", "Since": "0.1"}


def blocks(text):
    """Returns [(line, function, block lines or None)] of the declarations of a
    header."""
    lines = text.split("\n")
    for number, statement in lint.declarations(text):
        if not statement.startswith("SEGUE_API "):
            continue
        name = re.search(r"(\w+)\s*\(", statement).group(1)
        end = start = number - 1
        if not lines[end - 1].rstrip().endswith("*/"):
            yield number, name, None
            continue
        while start > 0 and not lines[start - 1].lstrip().startswith("/*"):
            start -= 1
        yield number, name, lines[start - 1:end]


def check_block(name, block, table):
    if block is None:
        return ["has no contract block"]
    if name not in table:
        return ["is not in api.def"]
    wrong = []
    if len(block) > 14:
        wrong.append(f"has a block of {len(block)} lines (at most 14)")
    if not re.match(r"/\* [A-Z]", block[0]):
        wrong.append("has a block that does not open with a sentence")
    tags = [(match.group(1), match.group(2)) for line in block
            if (match := re.match(r" \* (Returns|Thread|Callback|Since)\b\s*(\S*)",
                                  line))]
    if [tag for tag in TAGS if tag in dict(tags)] != [tag for tag, _ in tags]:
        wrong.append(f"has {', '.join(tag for tag, _ in tags)}: not in order, or twice")
    value = dict(tags)
    for tag, default in DEFAULTS.items():
        if value.get(tag) == default:
            wrong.append(f"says {tag} {default}, which is the default")
    thread, callback, _ = table[name]
    for tag, needed in (("Thread", thread.lower()), ("Callback", callback.lower())):
        if value.get(tag, DEFAULTS[tag]) != needed:
            wrong.append(f"says {tag} {value.get(tag, 'nothing')}, api.def {needed}")
    if not re.fullmatch(r"\d+\.\d+", value.get("Since", "0.1")):
        wrong.append(f"says Since {value['Since']}")
    return wrong


def check(path, text, table, errors):
    findings = [f"{path}:{line}: {name} {why}"
                for line, name, block in blocks(text)
                for why in check_block(name, block, table)]
    for name in sorted(set(re.findall(r"\bSEGUE_E_[A-Z_]*[A-Z]\b", text)) - errors):
        findings.append(f"{path}: {name} is not in errors.def")
    return findings


def self_check():
    good = ("/* Does it.\n *\n * Returns   SEGUE_OK.\n * Thread    setup\n"
            " * Callback  refused\n * Since     0.2\n */\nSEGUE_API int segue_a(void);\n")
    table = {"segue_a": ("SETUP", "REFUSED", "LIVE")}
    faults = [
        ("*/\n", "*/\n\n"), ("setup", "any"), (" * Thread    setup\n", ""),
        ("setup", "dispatch"), ("refused", "allowed"), (" * Callback  refused\n", ""),
        ("0.2", "soon"), ("0.2", "0.1"), ("SEGUE_OK", "SEGUE_E_NONE"),
        (" *\n", " *\n" * 12), ("segue_a(", "segue_b("), ("Does it.\n", "\n"),
        (" * Since     0.2\n", " * Returns   it.\n"),
    ]
    lint.expect(not check("x.h", good, table, set()), "a good block is refused")
    for old, new in faults:
        bad = good.replace(old, new)
        lint.expect(check("x.h", bad, table, set()), f"{new!r} for {old!r} was let pass")
    short = "/* Does it. */\nSEGUE_API int segue_a(void);\n"
    lint.expect(not check("x.h", short, {"segue_a": ("ANY", "ALLOWED", "LIVE")}, set()),
                "a block with the defaults is refused")


def main():
    self_check()
    table, errors = lint.api_table(), set(lint.error_table())
    errors.add("SEGUE_E_UNKNOWN")  # a result of segue_status_name, not a status
    findings, count = [], 0
    for path in lint.PUBLIC_HEADERS:
        text = lint.read(path)
        count += len(list(blocks(text)))
        findings += check(path, text, table, errors)
    lint.finish(findings, f"{count} functions")


main()
