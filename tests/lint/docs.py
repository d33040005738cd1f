"""Every public function has a contract block, and the block tells what api.def tells.

A block stands right above its declaration, has 4 to 16 lines, opens with a sentence, and
carries Returns, Thread, Callback and Since once each, in this order. Statuses it names
exist.
"""

import re

import lint

TAGS = ["Returns", "Thread", "Callback", "Since"]


def blocks(text):
    """[(line, function, block lines or None)] of the declarations of a header."""
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
    if not 4 <= len(block) <= 16:
        wrong.append(f"has a block of {len(block)} lines (4 to 16)")
    if not re.match(r"/\* [A-Z]", block[0]):
        wrong.append("has a block that does not open with a sentence")
    tags = [(match.group(1), match.group(2)) for line in block
            if (match := re.match(r" \* (Returns|Thread|Callback|Since)\s+(\S+)", line))]
    if [tag for tag, _ in tags] != TAGS:
        return wrong + [f"has {', '.join(t for t, _ in tags) or 'no tag'}, "
                        f"not {', '.join(TAGS)} in this order"]
    value = dict(tags)
    thread, callback, _ = table[name]
    if value["Thread"] != thread.lower():
        wrong.append(f"says Thread {value['Thread']}, api.def {thread}")
    if value["Callback"] != callback.lower():
        wrong.append(f"says Callback {value['Callback']}, api.def {callback}")
    if not re.fullmatch(r"\d+\.\d+", value["Since"]):
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
    good = ("/* Does it.\n *\n * Returns   SEGUE_OK.\n * Thread    any\n"
            " * Callback  allowed\n * Since     0.1\n */\nSEGUE_API int segue_a(void);\n")
    table = {"segue_a": ("ANY", "ALLOWED", "LIVE")}
    faults = [
        ("*/\n", "*/\n\n"), (" * Returns   SEGUE_OK.\n", ""), ("any", "setup"),
        ("allowed", "refused"), ("0.1", "soon"), ("SEGUE_OK", "SEGUE_E_NONE"),
        (" *\n", " *\n" * 12), ("segue_a(", "segue_b("), ("Does it.\n", "\n"),
    ]
    lint.expect(not check("x.h", good, table, set()), "a good block is refused")
    for old, new in faults:
        bad = good.replace(old, new)
        lint.expect(check("x.h", bad, table, set()), f"{new!r} for {old!r} was let pass")


def main():
    self_check()
    table, errors = lint.api_table(), set(lint.error_table())
    errors.add("SEGUE_E_UNKNOWN")  # segue_status_name's answer, not a status
    findings, count = [], 0
    for path in lint.PUBLIC_HEADERS:
        text = lint.read(path)
        count += len(list(blocks(text)))
        findings += check(path, text, table, errors)
    lint.finish(findings, f"{count} functions")


main()
