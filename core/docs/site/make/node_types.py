"""Pages of the public names of the Node package. TypeDoc has written them into
build/docs-parts/node (.ci/docs)."""

from __future__ import annotations

import re

import tree

# The pages of the navigation. Those of single names are reached from them.
MODULES = [
    {"segue-mcp": "reference/node/index/index.md"},
    {"testing": "reference/node/testing/index.md"},
    {"adapters/ai": "reference/node/adapters/ai/index.md"},
    {"adapters/langchain": "reference/node/adapters/langchain/index.md"},
    {"adapters/mcp": "reference/node/adapters/mcp/index.md"},
    {"adapters/opentelemetry": "reference/node/adapters/opentelemetry/index.md"},
]
PLACE = tree.ROOT / "build/docs-parts/node"


def pages() -> tuple[dict[str, str], list[object]]:
    made = {}
    for path in sorted(PLACE.rglob("*.md")):
        name = path.relative_to(PLACE).as_posix()
        made[f"reference/node/{name}"] = fit(path.read_text(encoding="utf-8"))
    return made, ["reference/node/index.md", *MODULES]


def fit(text: str) -> str:
    """Names the page after what it has."""
    return re.sub(r"^# (?!Node)", "# Node: ", text, count=1, flags=re.M)
