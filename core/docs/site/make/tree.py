"""Which pages the site has, and where they come from.

The site has pages of its own (core/docs/site/pages) and pages of the tree, which stay where
they are. A file that a page links to and that is no page becomes a page that shows it.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
PAGES = "core/docs/site/pages/"

# Pages of the tree: their place in the site.
INCLUDED = {
    "README.md": "readme.md",
    "python/README.md": "guides/python.md",
    "node/README.md": "guides/node.md",
    "core/README.md": "guides/c.md",
    "core/docs/proxy.md": "guides/proxy.md",
    "core/docs/metrics.md": "guides/metrics.md",
    "core/docs/board.md": "guides/board.md",
    "core/docs/curl.md": "guides/curl.md",
    "core/docs/demo.md": "guides/demo.md",
    "core/docs/promises.md": "understand/promises.md",
    "SECURITY.md": "understand/security.md",
    "core/docs/man/segue-proxy.1.md": "reference/segue-proxy.md",
    "core/docs/man/segue.md": "reference/segue.md",
    "core/docs/man/segue-mcp.md": "reference/segue-mcp.md",
    "core/docs/benchmarks.md": "benchmarks/index.md",
    "core/docs/comparison.md": "benchmarks/comparison.md",
    "core/docs/side-by-side.md": "benchmarks/side-by-side.md",
    "CHANGELOG.md": "changes.md",
    ".github/CONTRIBUTING.md": "inside/contributing.md",
}
# Directories whose pages are all included.
DIRECTORIES = {"core/docs/recipes": "how-to/deploy", "core/docs": "inside"}
LEFT_OUT = {"core/docs/site"}

START = ["index.md", "start/python.md", "start/node.md", "start/c.md", "start/proxy.md"]
UNDERSTAND = [
    "understand/log.md",
    "understand/cut.md",
    "understand/kill.md",
    "understand/take-over.md",
    "understand/revisions.md",
    "understand/promises.md",
    "understand/security.md",
]
GUIDES = [
    "guides/python.md",
    "guides/node.md",
    "guides/c.md",
    "guides/proxy.md",
    "guides/metrics.md",
    "guides/board.md",
    "guides/curl.md",
    "guides/demo.md",
    "readme.md",
]
HOW_TO = {
    "Long work": [
        "how-to/long-job.md",
        "how-to/question.md",
        "how-to/resume.md",
        "how-to/checkpoint.md",
        "how-to/progress.md",
        "how-to/cancel.md",
        "how-to/retry.md",
    ],
    "Serving": [
        "how-to/two-replicas.md",
        "how-to/behind-nginx.md",
        "how-to/fastapi.md",
        "how-to/express.md",
        "how-to/jwt.md",
        "how-to/metrics.md",
    ],
    "Clients": [
        "how-to/oauth-client.md",
        "how-to/scripts.md",
        "how-to/testing.md",
    ],
    "Moving": [
        "how-to/from-fastmcp.md",
        "how-to/from-python-sdk.md",
        "how-to/from-typescript-sdk.md",
    ],
    "C": [
        "how-to/epoll.md",
        "how-to/libuv.md",
        "how-to/custom-store.md",
        "how-to/custom-transport.md",
    ],
}
INSIDE_FIRST = ["inside/architecture.md", "inside/glossary.md", "inside/contributing.md"]


def included() -> dict[str, str]:
    """Returns the place in the site of each page of the tree."""
    found = dict(INCLUDED)
    for directory, place in DIRECTORIES.items():
        for path in sorted((ROOT / directory).glob("*.md")):
            name = path.relative_to(ROOT).as_posix()
            found.setdefault(name, f"{place}/{path.name}")
    return found


def navigation(reference: list[object]) -> list[object]:
    """Returns the navigation; `reference` is that of the pages that are made."""
    places = set(included().values())
    deploy = sorted(place for place in places if place.startswith("how-to/deploy/"))
    inside = sorted(
        place
        for place in places
        if place.startswith("inside/") and place not in INSIDE_FIRST
    )
    how_to: list[object] = ["how-to/index.md"]
    how_to += [{title: pages} for title, pages in HOW_TO.items()]
    how_to.append({"Deployment": deploy})
    return [
        {"Start": START},
        {"Understand": UNDERSTAND},
        {"How to": how_to},
        {"Guides": GUIDES},
        {"Reference": reference},
        {"Inside": INSIDE_FIRST + inside},
        {
            "Benchmarks": [
                "benchmarks/index.md",
                "benchmarks/comparison.md",
                "benchmarks/side-by-side.md",
            ]
        },
        {"Changes": ["changes.md"]},
    ]
