/**
 * What a handler throws so that its caller hears of it, and what a caller catches.
 *
 * @module
 */

import type { Result } from "./content.js";
import { RemoteError, SegueError } from "./errors.js";
import { wellFormed } from "./wellformed.js";

/** A tool failed in a way that a model should see: a result with `isError`. */
export class ToolError extends SegueError {
    override readonly name: string = "ToolError";
    override readonly code: string = "SEGUE_TOOL_ERROR";
    override readonly status: number = 0;
    override readonly retryable: boolean = false;
    /** On the client the whole result; a handler may give one to be told as it is. */
    readonly result: Result | undefined;

    /** @param message - what the model reads. */
    constructor(message = "The tool failed", result?: Result) {
        super(message);
        this.result = result;
    }
}

/** The person who was asked declined, or did not decide. */
export class Declined extends ToolError {
    override readonly name = "Declined";
    override readonly code = "SEGUE_DECLINED";
    readonly action: "decline" | "cancel";

    constructor(message = "The user declined", action: "decline" | "cancel" = "decline") {
        super(message);
        this.action = action;
    }
}

/** A JSON-RPC error, such as -32602 for parameters that are wrong. */
export class RpcError extends RemoteError {
    override readonly name = "RpcError";

    /**
     * @param code - the JSON-RPC code; `rpcCode` has it, since `code` is the name of the
     *     class of errors, as everywhere in Node.
     * @param message - one line.
     * @param data - any value that has a form in JSON.
     */
    constructor(code: number, message: string, data?: unknown) {
        const dataJson = data === undefined ? null : wellFormed(JSON.stringify(data));
        super(message, { rpcCode: code, dataJson });
    }
}
