/**
 * Numbers that cross between JavaScript and the library: the enums of `segue.h`, by their
 * names there without the prefix, and the kinds of events that the binding makes.
 *
 * A test compares them with the header. Expect values that are not here from a newer
 * library.
 */

/** What an event is, and what its a, b and c are. Bits of masks are `1 << kind`. */
export const Kind = {
    /** a: {@link Call}, b: params (JSON, the whole object), c: name */
    CALL: 0,
    /** The same, of a completion. */
    COMPLETION: 1,
    /** Of `callWatch`. */
    CANCEL: 2,
    /** Of `callWatch`: room again after a send returned false. */
    DRAIN: 3,
    /** Of `callRequireInput`. a: status, b: answer (JSON or null). */
    INPUT: 4,
    /** Of `serverNew`: the last conversation has ended. */
    IDLE: 5,
    /** Of `sessionOpen`: it can be used. */
    OPEN: 6,
    /** a: ErrorInfo or null. The session's last event. */
    CLOSED: 7,
    /** a: method, b: params (JSON or null). */
    NOTIFICATION: 8,
    /** a: array of Segment, in order, at least one. */
    SEGMENTS: 9,
    /** a: progress, b: total (0 = unknown), c: message or null. */
    PROGRESS: 10,
    /** Of a request. a: params of notifications/message (JSON). */
    LOG: 11,
    /** a: key, b: method, c: params (JSON). */
    QUESTION: 12,
    /** a: task id, b: the token of that moment or null: it covers what came before this
     * event, and nothing behind it. */
    TASK: 13,
    /** a: status, b: message or null. */
    STATUS: 14,
    /** a: status, b: result, or what there is of it (JSON or null), c: ErrorInfo or
     * null. A request's last event. */
    COMPLETE: 15,
    /** Of `transportSpawn`. a: one line. */
    STDERR: 16,
    /** Of `transportSetOauth`. a: url, b: state. */
    AUTHORIZE: 17,
    /** Of `runtimeNew`. a: level, b: text. */
    RUNTIME_LOG: 18,
    /** a: what a hook threw, b: which. It has no handler: the glue reports it. */
    EXCEPTION: 19,
    /** Of `transportCustom`, as the next five. a: Wire. */
    TRANSPORT_START: 20,
    /** a: Buffer; then say `transportTook(wire, a.length)`. */
    TRANSPORT_SEND: 21,
    /** No more will come: close, then say `transportClosed`. */
    TRANSPORT_CLOSE: 22,
    /** a: boolean. */
    TRANSPORT_PAUSE: 23,
    /** Connect again. */
    TRANSPORT_REOPEN: 24,
    /** The last one. */
    TRANSPORT_FREE: 25,
    /** Of `sessionOpen`. a: attempt, b: milliseconds until then, c: reason. */
    RECONNECT: 26,
    /** As CALL: its answer waits for the handler's first turn, whose end `callEndTurn`
     * tells. */
    CALL_NOW: 27,
    /** a: the token of that moment or null, as of TASK. */
    RESUMABLE: 28,
} as const;

/** `segue_status_value` */
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

/** `segue_log_level` */
export const LogLevel = {
    DEBUG: 0,
    INFO: 1,
    WARNING: 2,
    ERROR: 3,
} as const;

/** `segue_oauth_grant` */
export const OauthGrant = {
    CODE: 0,
    CLIENT: 1,
    ASSERTION: 2,
} as const;

/** `segue_durability` */
export const Durability = {
    NORMAL: 0,
    FULL: 1,
} as const;

/** `segue_validation` */
export const Validation = {
    ARGUMENTS: 1,
    RESULT: 2,
} as const;

/** `segue_cache_scope` */
export const CacheScope = {
    PRIVATE: 0,
    PUBLIC: 1,
} as const;

/** `segue_dialect`: bits */
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
    ONE_RESPONSE: 512,
    TRACKING: 1024,
    UNDECLARED_MODES: 2048,
    FROM_START: 4096,
    PARTIAL_INDEX: 8192,
} as const;

/** `segue_tool_flag`: bits */
export const ToolFlag = {
    INCREMENTAL: 1,
    RESTARTABLE: 2,
    UNSTOPPABLE: 4,
    RESUMABLE: 8,
} as const;

/** `segue_task_policy` */
export const TaskPolicy = {
    NEVER: 0,
    MAY: 1,
    MUST: 2,
} as const;

/** `segue_era` */
export const Era = {
    AUTO: 0,
    MODERN: 1,
    LEGACY: 2,
} as const;

/** `segue_response_mode` */
export const ResponseMode = {
    TASK: 1,
    IMMEDIATE: 2,
    STREAMING: 4,
} as const;

/** `segue_task_state` */
export const TaskState = {
    UNKNOWN: 0,
    WORKING: 1,
    INPUT_REQUIRED: 2,
    COMPLETED: 3,
    FAILED: 4,
    CANCELLED: 5,
} as const;

/** `segue_item` */
export const Item = {
    TOOL: 1,
    RESOURCE: 2,
    RESOURCE_TEMPLATE: 3,
    PROMPT: 4,
    QUESTION: 5,
} as const;
