/**
 * Numbers that are passed between JavaScript and the library: the enums of `segue.h`,
 * without the prefix of their names, and the kinds of events that the binding makes.
 *
 * A test compares these numbers with the header. A newer library may use values that are
 * not listed here.
 */

/** The kinds of events and the meaning of their values a, b and c. In a mask, the bit
 * of a kind is `1 << kind`. */
export const Kind = {
    /**
     * An event for the handler of an item. a: {@link Call}, b: params (JSON, the whole
     * object), c: name.
     */
    CALL: 0,
    /**
     * An event for the handler of an item: a completion request. a, b and c are as in
     * CALL.
     */
    COMPLETION: 1,
    /** An event for the handler of `callWatch`: the client wants the call to end. */
    CANCEL: 2,
    /**
     * An event for the handler of `callWatch`: there is room again after a send returned
     * false.
     */
    DRAIN: 3,
    /**
     * An event for the handler of `callRequireInput`. a: status, b: answer (JSON or
     * null).
     */
    INPUT: 4,
    /**
     * An event for the handler of `serverNew`: the server's last connection has ended.
     */
    IDLE: 5,
    /** An event for the handler of `sessionOpen`: the session can be used. */
    OPEN: 6,
    /** The last event of a session. a: ErrorInfo; null = this side closed the session. */
    CLOSED: 7,
    /** An event for the handler of `sessionOpen`. a: method, b: params (JSON or null). */
    NOTIFICATION: 8,
    /** An event of a request. a: array of Segment, in order, at least one. */
    SEGMENTS: 9,
    /** An event of a request. a: progress, b: total (0 = unknown), c: message or null. */
    PROGRESS: 10,
    /** An event of a request. a: params of notifications/message (JSON). */
    LOG: 11,
    /**
     * An event of a request: the server asks a question. a: key, b: method, c: params
     * (JSON).
     */
    QUESTION: 12,
    /**
     * An event of a request, which is now a task. a: task id, b: the current token or
     * null. The token covers the segments that arrived before this event, and no later
     * segments.
     */
    TASK: 13,
    /** An event of a request that is a task. a: the task's status, b: message or null. */
    STATUS: 14,
    /**
     * The last event of a request. a: status, b: the result, or the part of the result
     * that arrived (JSON or null; a handle `Text` when the JSON is long), c: ErrorInfo,
     * or for a success whether the result has `"isError": true`.
     */
    COMPLETE: 15,
    /**
     * An event for the handler of `transportSpawn`. a: one line of the child's standard
     * error.
     */
    STDERR: 16,
    /**
     * An event for the handler of `transportSetOauth`: a user must agree. a: URL to open,
     * b: OAuth state.
     */
    AUTHORIZE: 17,
    /** An event for the log handler of `runtimeNew`. a: level, b: text. */
    RUNTIME_LOG: 18,
    /** A hook threw an exception. a: the exception, b: the hook's name. The event has
     * no handler, so the runtime reports it. */
    EXCEPTION: 19,
    /** An event for the handler of `transportCustom`: the transport starts. a: Wire. */
    TRANSPORT_START: 20,
    /**
     * An event of a custom transport. a: a Buffer to send. When the Buffer is written,
     * the handler must call `transportTook(wire, a.length)`.
     */
    TRANSPORT_SEND: 21,
    /**
     * An event of a custom transport: the library sends no more data. The handler must
     * close the transport, and then call `transportClosed`.
     */
    TRANSPORT_CLOSE: 22,
    /** An event of a custom transport. a: true = stop feeding input, false = continue. */
    TRANSPORT_PAUSE: 23,
    /** An event of a custom transport: the library asks for a new connection. */
    TRANSPORT_REOPEN: 24,
    /** The last event of a custom transport. */
    TRANSPORT_FREE: 25,
    /**
     * An event for the handler of `sessionOpen`: the session will connect again. a:
     * number of the attempt, b: milliseconds until the attempt, c: reason.
     */
    RECONNECT: 26,
    /**
     * An event for the handler of an item: a call whose answer waits until its handler
     * has run as far as it can at once (the first turn). a, b and c are as in CALL. The
     * package reports the end of the first turn with `callEndTurn`.
     */
    CALL_NOW: 27,
    /**
     * An event of a request, which can now be resumed. a: the current token or null. The
     * token covers the segments that arrived before this event, and no later segments.
     */
    RESUMABLE: 28,
    /**
     * For the handler of exchangeOpen. a: in the first of these events a string of
     * status, name, value, name, value, ..., each with a NUL behind it and with names in
     * lower case, in later events null; b: bytes of the body, or null; a string with one
     * character for each byte = all of a short body; c: true = the answer is complete,
     * and no ANSWER_END follows.
     */
    ANSWER: 29,
    /** exchangeFeed has room again. */
    ANSWER_ROOM: 30,
    /** The last event of an exchange. a: 0 = the answer is complete, E_CLOSED = not. */
    ANSWER_END: 31,
    /**
     * For the handler of serverWatchClients: a client has come. a: number, b: principal,
     * c: what the client has declared (JSON).
     */
    CLIENT_OPEN: 32,
    /** The last event of a client. a: number. */
    CLIENT_CLOSED: 33,
    /** For the handler of runtimeObserve: an event. a: level, b: a line of JSON. */
    RUNTIME_EVENT: 34,
} as const;

/** The values of the C enum `segue_status_value`. */
export const Status = {
    OK: 0,
    E_INVALID: -1,
    E_CLOSED: -2,
    E_REENTRANT: -3,
    E_THREAD: -4,
    E_WOULD_BLOCK: -5,
    E_NOMEM: -6,
    E_VERSION: -7,
    E_NOT_FOUND: -8,
    E_EXISTS: -9,
    E_STATE: -10,
    E_TERMINAL: -11,
    E_LIMIT: -12,
    E_NOT_RESUMABLE: -13,
    E_UNSUPPORTED: -14,
    E_CANCELLED: -15,
    E_TIMEOUT: -16,
    E_TOO_SMALL: -17,
    E_DISCONNECTED: -100,
    E_IO: -101,
    E_SPAWN: -102,
    E_REFUSED: -103,
    E_UNAUTHORIZED: -104,
    E_PROTOCOL: -200,
    E_JSON: -201,
    E_TOO_LARGE: -202,
    E_NEGOTIATION: -203,
    E_INCOMPLETE: -204,
    E_TASK_LOST: -205,
    E_REMOTE: -300,
    E_STORE: -400,
    E_STORE_FULL: -401,
    E_STORE_CORRUPT: -402,
    E_FENCED: -403,
    E_FATAL: -900,
} as const;

/** The values of the C enum `segue_log_level`. */
export const LogLevel = {
    DEBUG: 0,
    INFO: 1,
    WARNING: 2,
    ERROR: 3,
} as const;

/** The values of the C enum `segue_oauth_grant`. */
export const OauthGrant = {
    CODE: 0,
    CLIENT: 1,
    ASSERTION: 2,
} as const;

/** The values of the C enum `segue_durability`. */
export const Durability = {
    NORMAL: 0,
    FULL: 1,
} as const;

/** The values of the C enum `segue_validation`. */
export const Validation = {
    ARGUMENTS: 1,
    RESULT: 2,
} as const;

/** The values of the C enum `segue_visibility`. */
export const Visibility = {
    VISIBLE: 0,
    SERVED_ONLY: 1,
    LISTED_ONLY: 2,
} as const;

/** The values of the C enum `segue_cache_scope`. */
export const CacheScope = {
    PRIVATE: 0,
    PUBLIC: 1,
} as const;

/** The values of the C enum `segue_dialect`, which form a bit mask. */
export const Dialect = {
    TASKS_2025: 1,
    STREAMING: 2,
    DRAFT_TASKS: 4,
    TASKS: 8,
    TASK_EVENTS: 16,
    PARTIAL: 32,
    PARTIAL_RESULTS: 64,
    RESUMABLE: 128,
    IMMEDIATE: 256,
} as const;

export const DraftWay = {
    ONE_RESPONSE: 1,
    TRACKING: 2,
    UNDECLARED_MODES: 4,
    FROM_START: 8,
    NO_PARTIAL_INDEX: 16,
} as const;

/** The values of the C enum `segue_tool_flag`, which form a bit mask. */
export const ToolFlag = {
    INCREMENTAL: 1,
    RESTARTABLE: 2,
    UNSTOPPABLE: 4,
    RESUMABLE: 8,
    STORED: 16,
} as const;

/** The values of the C enum `segue_task_policy`. */
export const TaskPolicy = {
    NEVER: 0,
    MAY: 1,
    MUST: 2,
} as const;

/** The values of the C enum `segue_era`. */
export const Era = {
    AUTO: 0,
    MODERN: 1,
    LEGACY: 2,
} as const;

/** The values of the C enum `segue_http_sse`. */
export const HttpSse = {
    AUTO: 0,
    NEVER: 1,
    ONLY: 2,
} as const;

/** The values of the C enum `segue_response_mode`. */
export const ResponseMode = {
    TASK: 1,
    IMMEDIATE: 2,
    STREAMING: 4,
} as const;

/** The values of the C enum `segue_task_state`. */
export const TaskState = {
    UNKNOWN: 0,
    WORKING: 1,
    INPUT_REQUIRED: 2,
    COMPLETED: 3,
    FAILED: 4,
    CANCELLED: 5,
} as const;

/** The values of the C enum `segue_item`. */
export const Item = {
    TOOL: 1,
    RESOURCE: 2,
    RESOURCE_TEMPLATE: 3,
    PROMPT: 4,
    QUESTION: 5,
    LIST: 6,
} as const;

/** The values of the C enum `segue_list_flag`. */
export const ListFlag = {
    SHOWS_ALL: 1,
} as const;
