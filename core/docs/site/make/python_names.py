"""Pages of the public names of the Python package. mkdocstrings reads the docstrings from
the sources, without importing them."""

from __future__ import annotations

import ast

import tree

PACKAGE = "python/src/segue"
# Page, title, and the modules whose names it has.
PAGES = [
    ("server", "Servers", [".server", ".server.remote", ".schema"]),
    ("client", "Clients", [".client", "._runtime"]),
    ("content", "Content", [".content", "._segue"]),
    ("questions", "Questions", [".questions"]),
    ("errors", "Errors", [".failures", ".errors"]),
]
MODULES = [
    "sync",
    "middleware",
    "tokens",
    "testing",
    "adapters.mcp",
    "adapters.langchain",
    "adapters.pydantic_ai",
    "adapters.openai_agents",
    "adapters.opentelemetry",
]


def public() -> dict[str, str]:
    """Returns the module of each name in segue.__all__."""
    code = ast.parse((tree.ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    modules, names = {}, []
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                modules[alias.asname or alias.name] = f".{node.module or ''}"
        if (
            isinstance(node, ast.Assign)
            and getattr(node.targets[0], "id", "") == "__all__"
        ):
            names = ast.literal_eval(node.value)
    return {name: modules[name] for name in names if modules.get(name, ".") != "."}


def pages() -> tuple[dict[str, str], list[object]]:
    names = public()
    made, navigation = {}, []
    index = ["# Python", "", "The names of `segue`, from their docstrings. "]
    index += ["[The guide](../../guides/python.md) says how they work together.", ""]
    for page, title, modules in PAGES:
        own = [name for name, module in names.items() if module in modules]
        text = [f"# Python: {title.lower()}", ""]
        text += [f"::: segue.{name}\n" for name in own]
        place = f"reference/python/{page}.md"
        made[place] = "\n".join(text)
        navigation.append({title: place})
        links = ", ".join(f"[`{name}`]({page}.md#segue.{name})" for name in own)
        index += [f"## {title}", "", links, ""]
    index += ["## Modules", ""]
    for module in MODULES:
        page = module.replace(".", "-").replace("_", "-")
        place = f"reference/python/{page}.md"
        made[place] = (
            f"# Python: segue.{module}\n\n::: segue.{module}\n    options:\n"
            "      show_root_heading: false\n      show_root_toc_entry: false\n"
        )
        navigation.append({module: place})
        index.append(f"- [`segue.{module}`]({page}.md)")
    made["reference/python/index.md"] = "\n".join(index) + "\n"
    return made, ["reference/python/index.md", *navigation]
