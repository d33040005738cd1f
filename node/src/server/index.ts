/**
 * The server: tools, resources and prompts, and the ways to serve them.
 *
 * @module
 */

export type { AccessToken, BearerAuth, Caller, Verdict } from "./auth.js";
export { Context, type LogLevelName, Resumed } from "./context.js";
export type { AskOptions, Elicited, Sampled, SampleOptions } from "./forms.js";
export type { Handler } from "./handler.js";
export {
    Call,
    type CompletionMiddleware,
    type ListMethod,
    type ListMiddleware,
    type Method,
    type Middleware,
    type Proceed,
    type UseOptions,
} from "./layers.js";
export type { Lifespan } from "./lifespan.js";
export { Listed } from "./lists.js";
export * as middleware from "./middleware.js";
export type {
    Completer,
    Failure,
    HandlerOptions,
    ItemOptions,
    ListenOptions,
    PromptHandler,
    PromptOptions,
    PromptReturn,
    Readable,
    ReadablePiece,
    ResourceHandler,
    ResourceOptions,
    Sendable,
    ServeOptions,
    ServerOptions,
    TaskPolicy,
    ToolAnnotations,
    ToolHandler,
    ToolOptions,
    ToolReturn,
    Variables,
} from "./options.js";
export type { Overrides, Provider } from "./provided.js";
export { Remote, type RemoteOptions } from "./remote.js";
export { type MountOptions, type Registered, Server } from "./server.js";
export type { CloseOptions, Listener, Serving } from "./serving.js";
export type { ServerSession, SessionState } from "./session.js";
export type { SignalOptions } from "./signals.js";
export { type Store, type StoreOptions, stores } from "./stores.js";
