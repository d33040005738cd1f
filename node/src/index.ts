/**
 * Segue: MCP clients and servers whose results stream, whose requests survive a
 * disconnect, and whose tasks survive a crash.
 *
 * @module
 */

export * from "./client/index.js";
export * from "./content.js";
export { asyncDispose } from "./dispose.js";
export {
    byStatus,
    ClosedError,
    DisconnectedError,
    EndedError,
    ExistsError,
    FatalError,
    FencedError,
    IncompleteError,
    InputOutputError,
    InvalidError,
    JsonError,
    LimitError,
    NegotiationError,
    NotFoundError,
    NotResumableError,
    OutOfMemoryError,
    ProtocolError,
    ReentrantError,
    RefusedError,
    RemoteError,
    RequestCancelledError,
    RequestTimeoutError,
    SegueError,
    type SegueErrorOptions,
    ServerStoreCorruptError,
    ServerStoreError,
    ServerStoreExistsError,
    ServerStoreFailedError,
    ServerStoreFullError,
    ServerStoreLostError,
    ServerStoreTooLargeError,
    ServerStoreTornError,
    SpawnError,
    StateError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    TaskLostError,
    ThreadError,
    TooLargeError,
    TooSmallError,
    TransportError,
    UnauthorizedError,
    UnsupportedError,
    VersionError,
    WouldBlockError,
} from "./errors.js";
export { type Event, logEvents, type ObserveOptions, observe } from "./events.js";
export * from "./failures.js";
export type {
    ElicitRequest,
    ElicitResult,
    JsonObject,
    JsonValue,
    Root,
    SampleMessage,
    SampleRequest,
    SampleResult,
} from "./questions.js";
export {
    configure,
    type Level,
    type Limits,
    type Logger,
    setLogger,
} from "./runtime.js";
export {
    type Issue,
    type JsonSchema,
    SchemaError,
    type SchemaInput,
    type SchemaLike,
    type SchemaOutput,
    type SchemaPair,
    type SchemaShape,
    type StandardSchema,
} from "./schema.js";
export { Segment } from "./segment.js";
export * from "./server/index.js";
export {
    defaultTokenPath,
    type NewTask,
    type SavedEra,
    type SavedTask,
    TokenFile,
    TokenFileError,
} from "./tokens.js";
