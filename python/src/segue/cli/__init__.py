"""The command ``segue``: inspects MCP servers, calls their tools and resumes their tasks.

The command needs typer and rich, and ``import segue`` does not. `segue.cli.codes` lists
the exit codes. ``segue proxy``, ``store``, ``board`` and ``doctor`` need neither: they
become the program segue-proxy.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command with the arguments of the process, then ends the process."""
    if sys.argv[1:2] in (["proxy"], ["store"], ["board"], ["doctor"]):
        from segue.cli.proxy import become_proxy

        become_proxy(sys.argv[2 if sys.argv[1] == "proxy" else 1 :])
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"segue: the command needs {error.name}: pip install 'segue-mcp[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        from segue.cli.app import app
    except ImportError as error:
        print(f"segue: {error}", file=sys.stderr)
        sys.exit(2)
    app(prog_name="segue")
