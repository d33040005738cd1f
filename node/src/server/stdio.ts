/**
 * Standard output belongs to the protocol while a server serves it: what the program
 * prints goes to standard error, so that it does no harm between the messages.
 *
 * @module
 */

let users = 0;
let restore: (() => void) | undefined;

/**
 * Sends what is written to `process.stdout` (as `console.log` does) to standard error.
 *
 * @returns what ends it; does nothing the second time.
 */
export function guardOutput(): () => void {
    if (users++ === 0) restore = divert();
    let isDone = false;
    return () => {
        if (isDone) return;
        isDone = true;
        if (--users > 0) return;
        restore?.();
        restore = undefined;
    };
}

function divert(): () => void {
    const { stdout, stderr } = process;
    const own = Object.getOwnPropertyDescriptor(stdout, "write");
    const write = stderr.write.bind(stderr) as typeof stdout.write;
    stdout.write = write;
    return () => {
        if (stdout.write !== write) return; // somebody else has put his own there
        if (own) Object.defineProperty(stdout, "write", own);
        else delete (stdout as { write?: unknown }).write;
    };
}
