"""The hosts that ``segue install`` knows: where their configuration is, and its form.

The Node package has the same table in hosts.ts.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["HOSTS", "Host"]


@dataclasses.dataclass(frozen=True)
class Host:
    """A program that starts MCP servers.

    Attributes:
        title: its name for people.
        file: its configuration. "~" is the home directory, "$CONFIG" the directory of
            configurations ($XDG_CONFIG_HOME, by default ~/.config).
        project: the file for one project, below the project's directory.
        member: the member of the configuration that has the servers.
        extra: members of an entry, besides the command.
        has_comments: whether the configuration may have comments.
        has_list: whether the command is one list with its arguments.
        env: the member of an entry with the environment variables.
        next: what the user has to do then.
    """

    title: str
    file: str
    project: str | None = None
    member: str = "mcpServers"
    extra: tuple[tuple[str, Any], ...] = ()
    has_comments: bool = False
    has_list: bool = False
    env: str = "env"
    next: str = "Restart it to load the server."

    def place(self) -> Path:
        """Returns the path of the configuration of the user."""
        config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        return Path(self.file.replace("$CONFIG", config)).expanduser()

    def members(self, command: Sequence[str]) -> dict[str, Any]:
        """Returns the members of an entry that this command sets."""
        if self.has_list:
            return {**dict(self.extra), "command": list(command)}
        return {**dict(self.extra), "command": command[0], "args": list(command[1:])}


_STDIO = (("type", "stdio"),)
_CODE = "$CONFIG/Code/User"
_RELOAD = "It loads the server when the file changes, or after a restart."

HOSTS: dict[str, Host] = {
    "claude-desktop": Host("Claude Desktop", "$CONFIG/Claude/claude_desktop_config.json"),
    "claude-code": Host("Claude Code", "~/.claude.json", ".mcp.json", extra=_STDIO),
    "cursor": Host("Cursor", "~/.cursor/mcp.json", ".cursor/mcp.json", next=_RELOAD),
    "vscode": Host(
        "VS Code",
        f"{_CODE}/mcp.json",
        ".vscode/mcp.json",
        member="servers",
        extra=_STDIO,
        has_comments=True,
        next='Start the server with "MCP: List Servers".',
    ),
    "windsurf": Host("Windsurf", "~/.codeium/windsurf/mcp_config.json"),
    "gemini-cli": Host(
        "Gemini CLI",
        "~/.gemini/settings.json",
        ".gemini/settings.json",
        has_comments=True,
    ),
    "copilot-cli": Host(
        "Copilot CLI",
        "~/.copilot/mcp-config.json",
        extra=(("type", "local"), ("tools", ["*"])),
    ),
    "cline": Host(
        "Cline",
        f"{_CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        next=_RELOAD,
    ),
    "roo-code": Host(
        "Roo Code",
        f"{_CODE}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ".roo/mcp.json",
        next=_RELOAD,
    ),
    "lm-studio": Host("LM Studio", "~/.lmstudio/mcp.json", next=_RELOAD),
    "zed": Host(
        "Zed",
        "$CONFIG/zed/settings.json",
        ".zed/settings.json",
        member="context_servers",
        has_comments=True,
        next=_RELOAD,
    ),
    "opencode": Host(
        "opencode",
        "$CONFIG/opencode/opencode.json",
        "opencode.json",
        member="mcp",
        extra=(("type", "local"),),
        has_comments=True,
        has_list=True,
        env="environment",
    ),
}
