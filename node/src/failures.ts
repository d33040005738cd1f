/**
 * Errors for failures of a handler. On the server, the handler throws these errors. On
 * the client, `ToolError` reports the failure to the caller.
 *
 * @module
 */

import type { Result } from "./content.js";
import { RemoteError, SegueError } from "./errors.js";
import { wellFormed } from "./wellformed.js";

/** A tool failed in a way that the model should see. The caller gets a result with
 * `isError`. */
export class ToolError extends SegueError {
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
    override readonly name = "Declined";
    override readonly code = "SEGUE_DECLINED";
    readonly action: "decline" | "cancel";

    constructor(message = "The user declined", action: "decline" | "cancel" = "decline") {
        super(message);
        this.action = action;
    }
}

/** A JSON-RPC error, such as -32602 for wrong parameters. */
export class RpcError extends RemoteError {
    override readonly name = "RpcError";

    /**
     * @param code - the JSON-RPC code. The error stores the code as `rpcCode`, because
     * `code` is the name of the error, as everywhere in Node.
     * @param message - the text of the error, in one line.
     * @param data - any value that JSON can represent.
     */
    constructor(code: number, message: string, data?: unknown) {
        const dataJson = data === undefined ? null : wellFormed(JSON.stringify(data));
        super(message, { rpcCode: code, dataJson });
    }
}
