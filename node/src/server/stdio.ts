/**
 * Sends the program's own output to standard error while a server uses standard output
 * for the protocol. On standard output, the program's output would damage the messages.
 *
 * @module
 */

let users = 0;
let restore: (() => void) | undefined;

/**
 * Sends writes to `process.stdout` (as `console.log` does) to standard error.
 *
 * @returns a function that lets writes go to standard output again. A second call of the
 * returned function does nothing.
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
        // If stdout.write has another value, other code has replaced the function in the
        // meantime. The function of the other code stays.
        if (stdout.write !== write) return;
        if (own) Object.defineProperty(stdout, "write", own);
        else delete (stdout as { write?: unknown }).write;
    };
}
