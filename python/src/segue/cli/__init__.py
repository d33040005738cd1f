"""The command ``segue``: look at MCP servers, call their tools, come back to their tasks.

It needs typer and rich, which ``import segue`` does not. What the exit codes mean is in
`segue.cli.codes`.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command with the arguments of the process; ends the process."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"segue: the command needs {error.name}: pip install typer rich",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        from segue.cli.app import app
    except ImportError as error:
        print(f"segue: {error}", file=sys.stderr)
        sys.exit(2)
    app(prog_name="segue")
