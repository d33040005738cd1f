/**
 * The hosts that `segue-mcp install` knows: where their configuration is, and its form.
 *
 * The Python package has the same table in hosts.py.
 */

import os from "node:os";
import path from "node:path";

/** A program that starts MCP servers. */
export interface Host {
    /** Its name for people. */
    readonly title: string;
    /**
     * Its configuration. "~" is the home directory, "$CONFIG" the directory of
     * configurations ($XDG_CONFIG_HOME, by default ~/.config).
     */
    readonly file: string;
    /** The file for one project, below the project's directory. */
    readonly project?: string;
    /** The member of the configuration that has the servers; default "mcpServers". */
    readonly member?: string;
    /** Members of an entry, besides the command. */
    readonly extra?: { readonly [name: string]: unknown };
    /** Whether the configuration may have comments. */
    readonly hasComments?: boolean;
    /** Whether the command is one list with its arguments. */
    readonly hasList?: boolean;
    /** The member of an entry with the environment variables; default "env". */
    readonly env?: string;
    /** What the user has to do then. */
    readonly next?: string;
}

const STDIO = { type: "stdio" };
const CODE = "$CONFIG/Code/User";
const CLINE = `${CODE}/globalStorage/saoudrizwan.claude-dev/settings`;
const ROO = `${CODE}/globalStorage/rooveterinaryinc.roo-cline/settings`;
const RELOAD = "It loads the server when the file changes, or after a restart.";

/** What the user of most hosts has to do. */
export const RESTART = "Restart it to load the server.";

export const HOSTS: { readonly [name: string]: Host } = {
    "claude-desktop": {
        title: "Claude Desktop",
        file: "$CONFIG/Claude/claude_desktop_config.json",
    },
    "claude-code": {
        title: "Claude Code",
        file: "~/.claude.json",
        project: ".mcp.json",
        extra: STDIO,
    },
    cursor: {
        title: "Cursor",
        file: "~/.cursor/mcp.json",
        project: ".cursor/mcp.json",
        next: RELOAD,
    },
    vscode: {
        title: "VS Code",
        file: `${CODE}/mcp.json`,
        project: ".vscode/mcp.json",
        member: "servers",
        extra: STDIO,
        hasComments: true,
        next: 'Start the server with "MCP: List Servers".',
    },
    windsurf: { title: "Windsurf", file: "~/.codeium/windsurf/mcp_config.json" },
    "gemini-cli": {
        title: "Gemini CLI",
        file: "~/.gemini/settings.json",
        project: ".gemini/settings.json",
        hasComments: true,
    },
    "copilot-cli": {
        title: "Copilot CLI",
        file: "~/.copilot/mcp-config.json",
        extra: { type: "local", tools: ["*"] },
    },
    cline: {
        title: "Cline",
        file: `${CLINE}/cline_mcp_settings.json`,
        next: RELOAD,
    },
    "roo-code": {
        title: "Roo Code",
        file: `${ROO}/mcp_settings.json`,
        project: ".roo/mcp.json",
        next: RELOAD,
    },
    "lm-studio": { title: "LM Studio", file: "~/.lmstudio/mcp.json", next: RELOAD },
    zed: {
        title: "Zed",
        file: "$CONFIG/zed/settings.json",
        project: ".zed/settings.json",
        member: "context_servers",
        hasComments: true,
        next: RELOAD,
    },
    opencode: {
        title: "opencode",
        file: "$CONFIG/opencode/opencode.json",
        project: "opencode.json",
        member: "mcp",
        extra: { type: "local" },
        hasComments: true,
        hasList: true,
        env: "environment",
    },
};

/** Returns the path of the configuration of the user. */
export function placeOf(host: Host): string {
    const home = process.env["HOME"] || os.homedir();
    const config = process.env["XDG_CONFIG_HOME"] || path.join(home, ".config");
    return host.file.replace("$CONFIG", config).replace(/^~/, home);
}
