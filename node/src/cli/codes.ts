/** The exit codes of the command, which are those of the command `segue` of Python. */

/** The exit codes, which a script can read from `$?`. */
export const Exit = {
    OK: 0,
    /** Wrong arguments, or a file that cannot be loaded. */
    USAGE: 2,
    /** The address cannot be used. */
    CONNECTION: 4,
    /** An exception of the user's code. */
    INTERNAL: 8,
} as const;

/** The command line is wrong. The message says why. */
export class UsageError extends Error {}

/** Shows a line on standard error. */
export function note(text: string): void {
    process.stderr.write(`${text}\n`);
}

/** Shows why the command failed. */
export function showError(error: unknown): void {
    note(`segue-mcp: ${error instanceof Error ? error.message : String(error)}`);
}
