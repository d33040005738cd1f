"""Compares core/docs/side-by-side.md with what was seen of the travel desks.  page.py
FACTS [--write]  Prints a cell; with --write the page gets what was seen."""
import json
import sys

PAGE = "core/docs/side-by-side.md"
HERE = "tests/interop/same"
FILES = {
    "Segue, Python": "segue_server.py",
    "Segue, Node": "segue_server.mjs",
    "FastMCP": "fastmcp_server.py",
    "Python SDK": "python_sdk_server.py",
    "TypeScript SDK": "typescript_sdk_server.mjs",
}


def code_lines(name):
    """Counts the lines that are neither empty nor a comment or the module's docstring."""
    with open(f"{HERE}/{name}", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    if lines[0].startswith('"""'):
        lines = lines[1:]
    return sum(not (not line or line.startswith(("#", "//"))) for line in lines)


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def table(facts):
    lines = [row("", *facts), row(*["---"] * (1 + len(facts)))]
    lines.append(row("lines of code", *[str(code_lines(FILES[desk])) for desk in facts]))
    for what in dict.fromkeys(what for seen in facts.values() for what in seen):
        cells = [", ".join(seen[what]).removeprefix("Missing: ") or "yes"
                 if what in seen else "?" for seen in facts.values()]
        lines.append(row(what, *cells))
    return "\n".join(lines)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        made = table(json.load(file))
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin, mark, rest = page.partition("<!-- seen -->\n")
    _, end_mark, end = rest.partition("<!-- end -->\n")
    assert mark and end_mark, f"{PAGE} has no place for what was seen"
    changed = begin + mark + made + "\n" + end_mark + end
    if "--write" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(changed)
        return
    cell = {"what": "the page says what was seen", "state": "green"}
    if changed != page:
        first = next((line for line in made.split("\n") if line not in page), "nothing")
        cell |= {"state": "FAILED", "reason": f"{PAGE} lacks: {first}"}
    print(json.dumps(cell))


main()
