"""Only dialects, negotiation and the tables of the wire know dialects and versions.

Outside of core/engine/dialect, core/engine/negotiate.* and core/wire/version.* no file
names the bit of a dialect, a version by its date or draft, compares versions, or has the
text of a version. Such a file asks the rows of the dialects (engine/server/dialects.h,
engine/client/dialects.h) or asks for a fact of the version (sgi_version_facts).
EXCEPTIONS says what else
there is, and why.

core/docs/adding-a-dialect.md lists every file that names its example, the dialect PN. The
list is complete, and has no file that does not name PN.
"""

import re

import lint

HOMES = ("core/engine/dialect/", "core/engine/negotiate.", "core/wire/version.")

RULES = {
    "names the bit of a dialect": r"\bSGI_DIALECT_[A-Z]\w*",
    "names a switch of a dialect": r"\bSEGUE_(?:DIALECT|WAY)_\w+",
    "names a version": r"\bSGI_VERSION_(?:\d|DRAFT)\w*",
    "compares versions": r"(?:[=!]=|[<>]=?) *SGI_VERSION_(?!UNKNOWN\b)\w+",
    "orders versions": r"\bversion *(?:[<>]=?) *\w|\w *[<>]=? *(?:\w+->)*version\b",
    "asks for an era": r"\bsgi_(?:version|facts)_(?:is|has)_\w+|\b(?:\w+->)?modern\b",
    "has the text of a version": r'"(?:\d{4}-\d\d-\d\d|DRAFT-\d[\w-]*)"',
    "includes a dialect": r'#include "engine/dialect/',
}

# What a file may break, and why.
EXCEPTIONS = {
    # the words of SEP-1905, which questions to a client use, too
    ("core/engine/response_modes.c", "names the bit of a dialect"),
    # the check of the options of a session: which switches a client has
    ("core/api/api_session.c", "names a switch of a dialect"),
    # the value of a label
    ("core/engine/server/metrics_families.c", "asks for an era"),
    ("core/engine/event.c", "asks for an era"),
    # options that concern tasks, and handles of tasks
    ("core/api/api_session.c", "includes a dialect"),
    ("core/api/api_request.c", "includes a dialect"),
    # a program on the public API, which chooses what its sessions accept
    ("core/proxy/upstream.c", "names a switch of a dialect"),
    # reverse stands above the dialects: a host answers questions by tasks of 2025-11-25
    ("core/engine/reverse/host.c", "includes a dialect"),
    ("core/engine/reverse/question_task.c", "includes a dialect"),
}


PAGE = "core/docs/adding-a-dialect.md"
HEADING = "## Every file that names PN\n"
TREES = ("bindings", "core", "node/src", "python/src", "tests")
# What only PN has.
WORDS = re.compile(r"partial_results?\b(?!_required)|PARTIAL_RESULTS|partialResult"
                   r"|DIALECT_PN|CAP_PARTIAL|\bPN\b|SEP-2998|R-776-1[789]")


def listed(page):
    """Returns the files of the page's list."""
    return set(re.findall(r"`([\w./-]+/[\w.-]+\.\w+)`", page.partition(HEADING)[2]))


def is_ours(path):
    return not {"node_modules", "__pycache__"} & set(path.parts)


def compare(names, page):
    """Returns what is wrong with the list, given the files that name PN."""
    wanted = listed(page)
    return ([f"{PAGE}:1: does not list {name}, which names PN"
             for name in sorted(names - wanted)] +
            [f"{PAGE}:1: lists {name}, which does not name PN"
             for name in sorted(wanted - names)])


def check_list():
    names = {path.as_posix() for path in lint.files(*(f"{t}/**/*" for t in TREES))
             if is_ours(path) and path.as_posix() != PAGE
             and path.suffix != ".png"
             and WORDS.search((lint.ROOT / path).read_text("utf-8", "replace"))}
    return compare(names, lint.read(PAGE))


def check(path, text):
    """Returns [(rule, line, what)] of one file."""
    if path.startswith(HOMES):
        return []
    bare = lint.without_comments(text)
    return [(rule, bare.count("\n", 0, match.start()) + 1, match.group(0))
            for rule, pattern in RULES.items() for match in re.finditer(pattern, bare)]


def self_check():
    wrong = {
        "if (dialects & SGI_DIALECT_P)": "names the bit of a dialect",
        "on & SEGUE_DIALECT_PARTIAL": "names a switch of a dialect",
        "x(SGI_VERSION_2025_03_26)": "names a version",
        "version >= SGI_VERSION_MODERN": "compares versions",
        "if (in->version < oldest)": "orders versions",
        "if (SGI_VERSION_HANDSHAKE >= in->version)": "orders versions",
        "sgi_version_is_modern(in->version)": "asks for an era",
        "reply->modern = true": "asks for an era",
        'is(text, "2026-07-28")': "has the text of a version",
        '#include "engine/dialect/rows.h"': "includes a dialect",
    }
    for text, rule in wrong.items():
        found = [finding[0] for finding in check("core/engine/server/x.c", text)]
        lint.expect(rule in found, f"{text} was let pass")
        lint.expect(not check("core/engine/dialect/x/server.c", text),
                    f"{text} in a dialect was refused")
    for text in ("version != SGI_VERSION_UNKNOWN", "sgi_facts(version)->has_rounds",
                 "is_modern_error(outcome->error)", "->version",
                 "version = SGI_VERSION_MODERN;",
                 "SGI_DIALECTS_DEFAULT", "/* SGI_DIALECT_L */"):
        lint.expect(not check("core/engine/server/x.c", text), f"{text} was refused")


    page = f"`a/b.c`\n{HEADING}| `c/d.c`, `c/e.json` | rows |\n"
    lint.expect(not compare({"c/d.c", "c/e.json"}, page), "a right list was refused")
    lint.expect(compare({"c/d.c"}, page), "a file without PN was let pass")
    lint.expect(compare({"a/b.c", "c/d.c", "c/e.json"}, page), "a gap was let pass")
    for text in ("_meta.partialResultToken", "SGI_DIALECT_PN", "a piece of PN,",
                 "(R-776-17)"):
        lint.expect(WORDS.search(text), f"{text} was let pass")
    for text in ("partial_results_required", "allowPartial", "SGI_DIALECT_P"):
        lint.expect(not WORDS.search(text), f"{text} was refused")


def main():
    self_check()
    paths = lint.files("core/**/*.[ch]")
    findings, used = [], set()
    for path in paths:
        name = path.as_posix()
        if name.startswith(("core/include/", "core/examples/")):
            continue
        for rule, line, what in check(name, lint.read(path)):
            if (name, rule) in EXCEPTIONS:
                used.add((name, rule))
            else:
                findings.append(f"{name}:{line}: {rule}: {what}")
    findings += [f"{name}:1: needs no exception any more: {rule}"
                 for name, rule in sorted(EXCEPTIONS - used)]
    findings += check_list()
    lint.finish(findings, f"{len(paths)} files")


main()
