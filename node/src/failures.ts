/**
 * Errors for failures of a handler. On the server, the handler throws these errors. On
 * the client, `ToolError` reports the failure to the caller.
 *
 * @module
 */

import type { Result } from "./content.js";
import { RemoteError, SegueError, UnsupportedError } from "./errors.js";
import { wellFormed } from "./wellformed.js";

/** A tool failed in a way that the model should see. The caller gets a result with
 * `isError`. */
export class ToolError extends SegueError {
    /** Name of the class. */
    override readonly name: string = "ToolError";
    override readonly code: string = "SEGUE_TOOL_ERROR";
    override readonly status: number = 0;
    override readonly retryable: boolean = false;
    /** On the client: the whole result. On the server: the result that the caller gets,
     * if the handler sets this member. */
    readonly result: Result | undefined;

    /** @param message - the text for the model. */
    constructor(message = "The tool failed", result?: Result) {
        super(message);
        this.result = result;
    }
}

/** The user declined a question, or closed the question without a decision. */
export class Declined extends ToolError {
    /** Name of the class. */
    override readonly name = "Declined";
    override readonly code = "SEGUE_DECLINED";
    /** `decline`, or `cancel` when the user closed the question. */
    readonly action: "decline" | "cancel";

    constructor(message = "The user declined", action: "decline" | "cancel" = "decline") {
        super(message);
        this.action = action;
    }
}

/**
 * The client of a call cannot answer a question of the handler. The message is written
 * for this client.
 *
 * @internal
 */
export class NotAsked extends UnsupportedError {}

/**
 * The codes from -32768 to -32000 that JSON-RPC and the protocol define. A handler may
 * use them.
 */
const DEFINED: readonly number[] = [
    -32700, -32603, -32602, -32601, -32600, -32002, -32020, -32021, -32022,
];
const MOST_CODE = 2 ** 31;

/**
 * Refuses a code that cannot be sent, or that has or may get a meaning of its own:
 * JSON-RPC reserves -32768 to -32000.
 */
function checkCode(code: number): void {
    const isWhole = Number.isInteger(code) && code >= -MOST_CODE && code < MOST_CODE;
    if (!isWhole || code === 0) {
        throw new RangeError(
            "the code of an RpcError has to be an integer from -2147483648 to " +
                `2147483647 other than 0, not ${code}`,
        );
    }
    if (code < -32768 || code > -32000 || DEFINED.includes(code)) return;
    throw new RangeError(
        `the protocol reserves the error code ${code}: an RpcError of your own needs a ` +
            "code outside of -32768 to -32000, such as 1",
    );
}

/** A JSON-RPC error, such as -32602 for wrong parameters. */
export class RpcError extends RemoteError {
    /** Name of the class. */
    override readonly name = "RpcError";

    /**
     * @param code - the JSON-RPC code. The error stores the code as `rpcCode`, because
     * `code` is the name of the error, as everywhere in Node.
     * @param message - the text of the error, in one line.
     * @param data - any value that JSON can represent.
     * @throws RangeError when the code is no integer of 32 bits, or 0, or the protocol
     * reserves it: one from -32768 to -32000 that neither JSON-RPC nor the protocol
     * defines.
     */
    constructor(code: number, message: string, data?: unknown) {
        checkCode(code);
        const dataJson = data === undefined ? null : wellFormed(JSON.stringify(data));
        super(message, { rpcCode: code, dataJson });
    }
    /** @internal Makes the error with which a peer answered. Its code is not checked. */
    static from(code: number, message: string, data?: unknown): RpcError {
        const made = new RpcError(-32603, message, data);
        Object.defineProperty(made, "rpcCode", { value: code, enumerable: true });
        return made;
    }
}

/**
 * Tells `onError` about an error that no caller gets. Prints the error when there is no
 * `onError`. What `onError` itself throws is printed, too: a function that reports
 * failures ends neither a call nor the process.
 *
 * @param text - what failed, for the printed line.
 * @internal
 */
export function report<Where>(
    onError: ((error: unknown, where: Where) => unknown) | undefined,
    error: unknown,
    where: Where,
    text: string,
): void {
    if (onError === undefined) {
        print(text, error);
        return;
    }
    const failed = (why: unknown): void => {
        print("onError", why);
        print(text, error);
    };
    try {
        const given = onError(error, where) as { then?: unknown } | undefined;
        if (typeof given?.then === "function") Promise.resolve(given).catch(failed);
    } catch (why) {
        failed(why);
    }
}

function print(text: string, error: unknown): void {
    console.error(`segue: ${text} failed:`, error);
}

/**
 * Returns whether the message of a handler's error is written for the caller. Any other
 * error may say what the caller must not know, such as the host of a database.
 *
 * @internal
 */
export function isPublic(error: unknown): error is SegueError {
    return [ToolError, RpcError, NotAsked].some((one) => error instanceof one);
}
