/** Exports of the client: `connect` and the types that it returns. */

export {
    FileStorage,
    OAuth,
    type OAuthOptions,
    type TokenStorage,
} from "./auth.js";
export type {
    Arguments,
    CallOptions,
    ReadOptions,
    ResumeOptions,
    StartOptions,
    StreamOptions,
    TaskOptions,
} from "./calls.js";
export {
    type Change,
    Changes,
    type Interests,
    type SubscribeOptions,
} from "./changes.js";
export type {
    CallbackFailure,
    LogLevel,
    LogMessage,
    RawRequestOptions,
    Reconnect,
    RequestOptions,
} from "./conversation.js";
export type { Progress } from "./exchange.js";
export {
    type Completion,
    type Item,
    type Prompt,
    type PromptArgument,
    type PromptResult,
    ReadResult,
    type Resource,
    type ResourceTemplate,
    type Tool,
} from "./items.js";
export type { ResponseMode } from "./modes.js";
export { authorize, type Command, connect, resume, type Target } from "./opening.js";
export type { ConnectOptions, TlsOptions, ValidateResult } from "./options.js";
export { type Era, type Implementation, Peer } from "./peer.js";
export {
    type AnswerOptions,
    type OnElicit,
    type OnInput,
    type OnSample,
    type Question,
    type QuestionContext,
    Refused,
    type Roots,
} from "./questions.js";
export {
    type CompleteOptions,
    Listing,
    type MetaOptions,
    type Reference,
    Session,
} from "./session.js";
export { type Leave, Stream } from "./stream.js";
export { Task, type TaskStatus } from "./task.js";
