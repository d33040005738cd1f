/**
 * The errors: one class for each status of the library, all derived from
 * {@link SegueError}.
 *
 * Groups of statuses have a common base class, too: {@link TransportError} for a failed
 * connection, {@link ProtocolError} for a peer that broke the protocol,
 * {@link StoreError} for the store. {@link RemoteError} is an error with which the peer
 * answered. Instead of using instanceof, a program may compare `code`.
 *
 * bindings/node/make_errors.py generates the part between the marks "from errors.def:
 * begin" and "from errors.def: end".
 *
 * @module
 */
import type { Result } from "./content.js";
import type { ErrorInfo } from "./native.js";

/** The options of a {@link SegueError}. */
export interface SegueErrorOptions {
    /** The JSON-RPC code that the peer sent. */
    rpcCode?: number | undefined;
    /** The `data` of the peer's error as JSON text. */
    dataJson?: string | null | undefined;
    /**
     * Whether the same call may succeed if it is repeated. Default: the value of the
     * status.
     */
    retryable?: boolean | undefined;
    /** The part of a result that had arrived before the failure. */
    partial?: Result | undefined;
    /** The error that caused this error. */
    cause?: unknown;
}

interface Description {
    text: string;
}

/** Base of all errors of Segue. */
export class SegueError extends Error {
    /** The stable name of the status, as in `segue.h`: "SEGUE_E_CLOSED". */
    declare readonly code: string;
    /** The number of the status, which is negative. */
    declare readonly status: number;
    /** Whether the same call may succeed if it is repeated. */
    declare readonly retryable: boolean;
    /** The JSON-RPC code that the peer sent; 0 when the error arose on this side. */
    readonly rpcCode: number;
    /** The `data` of the peer's error as JSON text, or null. */
    readonly dataJson: string | null;
    /**
     * The part of a result that had arrived before the failure. The client sets this
     * member. After the loss of the connection or of a task it is never undefined.
     */
    partial: Result | undefined;
    /** The token that `session.resume` takes to continue the request. The client sets
     * this member. */
    token: string | undefined;

    constructor(message = "", options: SegueErrorOptions = {}) {
        const cause = options.cause === undefined ? undefined : { cause: options.cause };
        super(message || (new.target.prototype as unknown as Description).text, cause);
        this.rpcCode = options.rpcCode ?? 0;
        this.dataJson = options.dataJson ?? null;
        this.partial = options.partial;
        this.token = undefined;
        const { retryable } = options;
        if (retryable !== undefined && retryable !== this.retryable)
            Object.defineProperty(this, "retryable", {
                value: retryable,
                enumerable: true,
            });
    }

    /**
     * The `data` of the peer's error, decoded anew at each use; undefined when the error
     * has no data.
     */
    get data(): unknown {
        return this.dataJson === null ? undefined : JSON.parse(this.dataJson);
    }
}

/** The connection to the peer failed (statuses -100 to -199). */
export class TransportError extends SegueError {}

type ErrorClass = new (message?: string, options?: SegueErrorOptions) => SegueError;

const classes = new Map<number, ErrorClass>();
/** The error class of each status, by the number of the status. */
export const byStatus: ReadonlyMap<number, ErrorClass> = classes;

/** Sets the values that all errors of a class share, in the class's prototype. */
function describe(
    kind: ErrorClass,
    status: number,
    code: string,
    text: string,
    retryable: boolean,
): void {
    classes.set(status, kind);
    const fixed = { status, code, text, retryable, name: kind.name };
    for (const [key, value] of Object.entries(fixed))
        Object.defineProperty(kind.prototype, key, { value, configurable: true });
}

// ---- from errors.def: begin ----

/** Invalid argument (SEGUE_E_INVALID, -1). */
export class InvalidError extends SegueError {}
describe(InvalidError, -1, "SEGUE_E_INVALID", "invalid argument", false);

/** The handle is closed (SEGUE_E_CLOSED, -2). */
export class ClosedError extends SegueError {}
describe(ClosedError, -2, "SEGUE_E_CLOSED", "the handle is closed", false);

/** This call is not allowed inside a callback (SEGUE_E_REENTRANT, -3). */
export class ReentrantError extends SegueError {}
describe(
    ReentrantError,
    -3,
    "SEGUE_E_REENTRANT",
    "this call is not allowed inside a callback",
    false,
);

/** This call is not allowed on this thread (SEGUE_E_THREAD, -4). */
export class ThreadError extends SegueError {}
describe(
    ThreadError,
    -4,
    "SEGUE_E_THREAD",
    "this call is not allowed on this thread",
    false,
);

/** Too much output waits: continue at on_drain (SEGUE_E_WOULD_BLOCK, -5). */
export class WouldBlockError extends SegueError {}
describe(
    WouldBlockError,
    -5,
    "SEGUE_E_WOULD_BLOCK",
    "too much output waits: continue at on_drain",
    true,
);

/** Out of memory (SEGUE_E_NOMEM, -6). */
export class OutOfMemoryError extends SegueError {}
describe(OutOfMemoryError, -6, "SEGUE_E_NOMEM", "out of memory", true);

/** A struct sets a member of a newer version (SEGUE_E_VERSION, -7). */
export class VersionError extends SegueError {}
describe(
    VersionError,
    -7,
    "SEGUE_E_VERSION",
    "a struct sets a member of a newer version",
    false,
);

/** Not found (SEGUE_E_NOT_FOUND, -8). */
export class NotFoundError extends SegueError {}
describe(NotFoundError, -8, "SEGUE_E_NOT_FOUND", "not found", false);

/** Exists already (SEGUE_E_EXISTS, -9). */
export class ExistsError extends SegueError {}
describe(ExistsError, -9, "SEGUE_E_EXISTS", "exists already", false);

/** This call is not possible in the state of the handle (SEGUE_E_STATE, -10). */
export class StateError extends SegueError {}
describe(
    StateError,
    -10,
    "SEGUE_E_STATE",
    "this call is not possible in the state of the handle",
    false,
);

/** The operation has ended (SEGUE_E_TERMINAL, -11). */
export class EndedError extends SegueError {}
describe(EndedError, -11, "SEGUE_E_TERMINAL", "the operation has ended", false);

/** A limit is reached (SEGUE_E_LIMIT, -12). */
export class LimitError extends SegueError {}
describe(LimitError, -12, "SEGUE_E_LIMIT", "a limit is reached", false);

/** The request or task cannot be resumed (SEGUE_E_NOT_RESUMABLE, -13). */
export class NotResumableError extends SegueError {}
describe(
    NotResumableError,
    -13,
    "SEGUE_E_NOT_RESUMABLE",
    "the request or task cannot be resumed",
    false,
);

/** The peer or this build does not support this (SEGUE_E_UNSUPPORTED, -14). */
export class UnsupportedError extends SegueError {}
describe(
    UnsupportedError,
    -14,
    "SEGUE_E_UNSUPPORTED",
    "the peer or this build does not support this",
    false,
);

/** Cancelled (SEGUE_E_CANCELLED, -15). */
export class RequestCancelledError extends SegueError {}
describe(RequestCancelledError, -15, "SEGUE_E_CANCELLED", "cancelled", false);

/** Timed out (SEGUE_E_TIMEOUT, -16). */
export class RequestTimeoutError extends SegueError {}
describe(RequestTimeoutError, -16, "SEGUE_E_TIMEOUT", "timed out", true);

/** The buffer is too small (SEGUE_E_TOO_SMALL, -17). */
export class TooSmallError extends SegueError {}
describe(TooSmallError, -17, "SEGUE_E_TOO_SMALL", "the buffer is too small", false);

/** The connection is lost (SEGUE_E_DISCONNECTED, -100). */
export class DisconnectedError extends TransportError {}
describe(DisconnectedError, -100, "SEGUE_E_DISCONNECTED", "the connection is lost", true);

/** Input or output failed (SEGUE_E_IO, -101). */
export class InputOutputError extends TransportError {}
describe(InputOutputError, -101, "SEGUE_E_IO", "input or output failed", true);

/** The program cannot be started (SEGUE_E_SPAWN, -102). */
export class SpawnError extends TransportError {}
describe(SpawnError, -102, "SEGUE_E_SPAWN", "the program cannot be started", false);

/** The peer refused the request, or is not trusted (SEGUE_E_REFUSED, -103). */
export class RefusedError extends TransportError {}
describe(
    RefusedError,
    -103,
    "SEGUE_E_REFUSED",
    "the peer refused the request, or is not trusted",
    false,
);

/** The peer requires authorization (SEGUE_E_UNAUTHORIZED, -104). */
export class UnauthorizedError extends TransportError {}
describe(
    UnauthorizedError,
    -104,
    "SEGUE_E_UNAUTHORIZED",
    "the peer requires authorization",
    false,
);

/** The peer broke the protocol (SEGUE_E_PROTOCOL, -200). */
export class ProtocolError extends SegueError {}
describe(ProtocolError, -200, "SEGUE_E_PROTOCOL", "the peer broke the protocol", false);

/** Not valid JSON (SEGUE_E_JSON, -201). */
export class JsonError extends ProtocolError {}
describe(JsonError, -201, "SEGUE_E_JSON", "not valid JSON", false);

/** Too large: a size limit is exceeded (SEGUE_E_TOO_LARGE, -202). */
export class TooLargeError extends ProtocolError {}
describe(
    TooLargeError,
    -202,
    "SEGUE_E_TOO_LARGE",
    "too large: a size limit is exceeded",
    false,
);

/** No protocol version in common (SEGUE_E_NEGOTIATION, -203). */
export class NegotiationError extends ProtocolError {}
describe(
    NegotiationError,
    -203,
    "SEGUE_E_NEGOTIATION",
    "no protocol version in common",
    false,
);

/** The result is incomplete: a part of it was lost (SEGUE_E_INCOMPLETE, -204). */
export class IncompleteError extends ProtocolError {}
describe(
    IncompleteError,
    -204,
    "SEGUE_E_INCOMPLETE",
    "the result is incomplete: a part of it was lost",
    false,
);

/** The server does not have the task any more (SEGUE_E_TASK_LOST, -205). */
export class TaskLostError extends ProtocolError {}
describe(
    TaskLostError,
    -205,
    "SEGUE_E_TASK_LOST",
    "the server does not have the task any more",
    false,
);

/** The peer answered with an error (SEGUE_E_REMOTE, -300). */
export class RemoteError extends SegueError {}
describe(RemoteError, -300, "SEGUE_E_REMOTE", "the peer answered with an error", false);

/** The store failed (SEGUE_E_STORE, -400). */
export class StoreError extends SegueError {}
describe(StoreError, -400, "SEGUE_E_STORE", "the store failed", true);

/** The store is full (SEGUE_E_STORE_FULL, -401). */
export class StoreFullError extends StoreError {}
describe(StoreFullError, -401, "SEGUE_E_STORE_FULL", "the store is full", true);

/** The store is damaged or of a newer format (SEGUE_E_STORE_CORRUPT, -402). */
export class StoreCorruptError extends StoreError {}
describe(
    StoreCorruptError,
    -402,
    "SEGUE_E_STORE_CORRUPT",
    "the store is damaged or of a newer format",
    false,
);

/** Another server has taken the operation over (SEGUE_E_FENCED, -403). */
export class FencedError extends StoreError {}
describe(
    FencedError,
    -403,
    "SEGUE_E_FENCED",
    "another server has taken the operation over",
    false,
);

/** Internal failure (SEGUE_E_FATAL, -900). */
export class FatalError extends SegueError {}
describe(FatalError, -900, "SEGUE_E_FATAL", "internal failure", false);

/** The server's store refused the operation, or cannot return the operation. */
export class ServerStoreError extends RemoteError {
    /** Name of the class. */
    override readonly name: string = "ServerStoreError";
}

/** The server reports that its store fails. */
export class ServerStoreFailedError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreFailedError";
}

/** The server reports that its store is full. */
export class ServerStoreFullError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreFullError";
}

/** The server reports that its store is damaged. */
export class ServerStoreCorruptError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreCorruptError";
}

/** The server reports that its store has lost the operation. */
export class ServerStoreLostError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreLostError";
}

/** The server reports that its store has lost a part of the operation. */
export class ServerStoreTornError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreTornError";
}

/** The server reports that its store already has this operation. */
export class ServerStoreExistsError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreExistsError";
}

/** The server reports that the operation is too large to store. */
export class ServerStoreTooLargeError extends ServerStoreError {
    /** Name of the class. */
    override readonly name = "ServerStoreTooLargeError";
}

/** The error class of each `data.reason` that a peer's error may have. */
export const byReason: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
    ["store_failed", ServerStoreFailedError],
    ["store_full", ServerStoreFullError],
    ["store_corrupt", ServerStoreCorruptError],
    ["store_lost", ServerStoreLostError],
    ["store_torn", ServerStoreTornError],
    ["store_exists", ServerStoreExistsError],
    ["store_too_large", ServerStoreTooLargeError],
]);

// ---- from errors.def: end ----

function kindByReason(dataJson: string): ErrorClass {
    const data: unknown = JSON.parse(dataJson);
    const reason =
        typeof data === "object" && data !== null && "reason" in data
            ? data.reason
            : undefined;
    // the server has the task, but not its handler
    if (reason === "server_restarted") return TaskLostError;
    return (typeof reason === "string" ? byReason.get(reason) : undefined) ?? RemoteError;
}

/** Makes the errors that the addon throws (Native.setErrorFactory). */
export function makeError(
    status: number,
    message: string,
    rpcCode: number,
    dataJson: string | null,
    retryable: boolean | null,
): SegueError {
    let Kind = byStatus.get(status) ?? FatalError;
    if (Kind === RemoteError && dataJson?.includes('"reason"') === true)
        Kind = kindByReason(dataJson);
    return new Kind(message, { rpcCode, dataJson, retryable: retryable ?? undefined });
}

/** Makes the error of an event. If `info` is null, the error has only the status. */
export function fromInfo(info: ErrorInfo | null, status?: number): SegueError {
    if (info) return makeError(...info);
    return makeError(status ?? -900, "", 0, null, null);
}
