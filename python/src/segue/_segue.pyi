"""The functions of the C library (``segue.h``), one to one.

The C function ``segue_X_Y`` has the name ``X_Y`` here. A function that fails in C raises
an exception here. A function returns the values that C stores in out-parameters. Handles
are opaque. A handle is freed by its ``X_free``, or with its last reference. Using a
handle, or freeing it again, raises ``segue.ClosedError`` when the handle was freed, when
a function has consumed it, or when its runtime was freed.

Options are dicts whose keys are the members of the C struct. A member that is missing or
``None`` has the library's default. Durations are in milliseconds. JSON is passed as bytes
(str is accepted), text as str.

Python code does not run inside the library. ``runtime_dispatch`` returns a list of events
``(handler, kind, a, b, c)``, and its caller calls ``handler(kind, a, b, c)`` for each
event, in order. The module keeps a handler alive until its last event has been returned.
Hooks are the exception, because C needs their answer at once: principal, validate,
on_headers, on_bearer, on_assertion, on_load and on_save run inside ``runtime_dispatch``,
on the thread that called ``runtime_dispatch``. Hooks must be quick. If a hook raises, the
answer is "no", and an event ``(None, EXCEPTION, exception, where, None)`` reports the
exception.

When memory runs out, an event may be lost, and an EXCEPTION with a MemoryError reports
the loss. A request that lost an event is cancelled, and its COMPLETE has the status
E_NOMEM. The last event of an object is always delivered, perhaps without its values.

Threads: any function may be called on any thread that holds the GIL. Only one thread at a
time may call ``runtime_dispatch``. No thread of the library ever takes the GIL.
"""

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from typing import Any, Final, Literal, Protocol, TypedDict, final

# The kinds of events, and the meaning of the values a, b and c of each kind. In a mask of
# events, the bit of a kind is ``1 << kind``.

# A client calls an item of the server. a: Call, b: params (bytes, the whole object),
# c: name of the item (str)
CALL: Final = 0
# a client asks for suggestions (completion/complete); values as in CALL
COMPLETION: Final = 1
CANCEL: Final = 2  # for the handler of call_watch: the client wants the call to end
# For the handler of call_watch: after a send that returned False, there is room again.
DRAIN: Final = 3
# For the handler of call_require_input: the answer. a: status, b: answer (bytes or None)
INPUT: Final = 4
IDLE: Final = 5  # for the handler of server_new: the server's last connection has ended
OPEN: Final = 6  # for the handler of session_open: the session can be used
CLOSED: Final = 7  # the last event of a session. a: error (ErrorInfo or None)
# A notification that belongs to no request. a: method (str), b: params (bytes or None)
NOTIFICATION: Final = 8
SEGMENTS: Final = 9  # segments have arrived. a: list of Segment, in order, at least one
# The server reports progress. a: progress (float), b: total (float, 0 = unknown),
# c: message (str or None)
PROGRESS: Final = 10
# A log message of the server for a request. a: params of notifications/message (bytes)
LOG: Final = 11
# The server asks a question. a: key (str), b: method (str), c: params (bytes)
QUESTION: Final = 12
# The request has become a task. a: task id (str), b: the current token (str or None). The
# token covers the segments that were delivered before this event.
TASK: Final = 13
STATUS: Final = 14  # a new status of the task. a: status (str), b: message (str or None)
# The last event of a request. a: status (int), b: the result, or the part of the result
# that arrived (bytes or None), c: error (ErrorInfo or None)
COMPLETE: Final = 15
# For the handler of transport_spawn: a line of the child's standard error. a: the line
# (str; invalid UTF-8 is escaped)
STDERR: Final = 16
# For the handler of transport_set_oauth: a user must visit a URL. a: url (str),
# b: state (str)
AUTHORIZE: Final = 17
# for the log handler of runtime_new: a log line. a: level (int), b: text (str)
RUNTIME_LOG: Final = 18
EXCEPTION: Final = 19  # a hook has raised. a: the exception, b: the hook's name (str)
# The six TRANSPORT_ events are for the handler of transport_custom. TRANSPORT_START: the
# transport was attached. a: Wire
TRANSPORT_START: Final = 20
# a: bytes to send; report the bytes that were sent by transport_took
TRANSPORT_SEND: Final = 21
TRANSPORT_CLOSE: Final = 22
# a: True = stop passing input to transport_feed, False = continue
TRANSPORT_PAUSE: Final = 23
TRANSPORT_REOPEN: Final = 24
TRANSPORT_FREE: Final = 25  # the last event of a custom transport
# For the handler of session_open: the server was lost, and the client will try again.
# a: number of the attempt (int), b: ms until the attempt (int), c: reason (str)
RECONNECT: Final = 26
# A call, with the same values as CALL, whose answer waits until the handler has run as
# far as it can at once (the first turn). call_end_turn ends this wait.
CALL_NOW: Final = 27
# the request can be resumed by a new token. a: the token, as b of TASK
RESUMABLE: Final = 28
# For the handler of exchange_open. a: in the first of these events (status, headers),
# where headers is a list of pairs (name, value) of bytes with names in lower case; in
# later events None. b: bytes of the body, or None. c: True = the answer is complete, and
# no event follows; otherwise None
ANSWER: Final = 29
ANSWER_ROOM: Final = 30  # exchange_feed has room again
# The last event of an exchange, unless an ANSWER was the last one.
# a: 0 = the answer is complete, E_CLOSED = it is not (int)
ANSWER_END: Final = 31
# For the handler of server_watch_clients: a client has come. a: number (int),
# b: principal (str), c: what the client has declared (JSON, bytes)
CLIENT_OPEN: Final = 32
CLIENT_CLOSED: Final = 33  # the last event of a client. a: number (int)
# for the handler of runtime_observe: an event. a: level (int), b: a line of JSON (str)
RUNTIME_EVENT: Final = 34

Handler = Callable[[int, Any, Any, Any], object]
Event = tuple[Handler | None, int, Any, Any, Any]
# The parts of an error: status, message, JSON-RPC code (0 = the error arose on this
# side), data (JSON or None), retryable.
ErrorInfo = tuple[int, str, int, bytes | None, bool]
Json = bytes | str

# The enums of segue.h.

OK: Final = 0
E_INVALID: Final = -1
E_CLOSED: Final = -2
E_REENTRANT: Final = -3
E_THREAD: Final = -4
E_WOULD_BLOCK: Final = -5
E_NOMEM: Final = -6
E_VERSION: Final = -7
E_NOT_FOUND: Final = -8
E_EXISTS: Final = -9
E_STATE: Final = -10
E_TERMINAL: Final = -11
E_LIMIT: Final = -12
E_NOT_RESUMABLE: Final = -13
E_UNSUPPORTED: Final = -14
E_CANCELLED: Final = -15
E_TIMEOUT: Final = -16
E_TOO_SMALL: Final = -17
E_DISCONNECTED: Final = -100
E_IO: Final = -101
E_SPAWN: Final = -102
E_REFUSED: Final = -103
E_UNAUTHORIZED: Final = -104
E_PROTOCOL: Final = -200
E_JSON: Final = -201
E_TOO_LARGE: Final = -202
E_NEGOTIATION: Final = -203
E_INCOMPLETE: Final = -204
E_TASK_LOST: Final = -205
E_REMOTE: Final = -300
E_STORE: Final = -400
E_STORE_FULL: Final = -401
E_STORE_CORRUPT: Final = -402
E_FENCED: Final = -403
E_FATAL: Final = -900
LOG_DEBUG: Final = 0
LOG_INFO: Final = 1
LOG_WARNING: Final = 2
LOG_ERROR: Final = 3
OAUTH_CODE: Final = 0
OAUTH_CLIENT: Final = 1
OAUTH_ASSERTION: Final = 2
DURABILITY_NORMAL: Final = 0
DURABILITY_FULL: Final = 1
VALIDATE_ARGUMENTS: Final = 1
VALIDATE_RESULT: Final = 2
CACHE_PRIVATE: Final = 0
CACHE_PUBLIC: Final = 1
DIALECT_TASKS_2025: Final = 1
DIALECT_STREAMING: Final = 2
DIALECT_DRAFT_TASKS: Final = 4
DIALECT_TASKS: Final = 8
DIALECT_TASK_EVENTS: Final = 16
DIALECT_PARTIAL: Final = 32
DIALECT_PARTIAL_RESULTS: Final = 64
DIALECT_RESUMABLE: Final = 128
DIALECT_IMMEDIATE: Final = 256
WAY_ONE_RESPONSE: Final = 1
WAY_TRACKING: Final = 2
WAY_UNDECLARED_MODES: Final = 4
WAY_FROM_START: Final = 8
WAY_NO_PARTIAL_INDEX: Final = 16
TOOL_INCREMENTAL: Final = 1
TOOL_RESTARTABLE: Final = 2
TOOL_UNSTOPPABLE: Final = 4
TOOL_RESUMABLE: Final = 8
TOOL_STORED: Final = 16
TASK_NEVER: Final = 0
TASK_MAY: Final = 1
TASK_MUST: Final = 2
VISIBLE: Final = 0
SERVED_ONLY: Final = 1
LISTED_ONLY: Final = 2
ERA_AUTO: Final = 0
ERA_MODERN: Final = 1
ERA_LEGACY: Final = 2
HTTP_SSE_AUTO: Final = 0
HTTP_SSE_NEVER: Final = 1
HTTP_SSE_ONLY: Final = 2
RESPONSE_TASK: Final = 1
RESPONSE_IMMEDIATE: Final = 2
RESPONSE_STREAMING: Final = 4
TASK_UNKNOWN: Final = 0
TASK_WORKING: Final = 1
TASK_INPUT_REQUIRED: Final = 2
TASK_COMPLETED: Final = 3
TASK_FAILED: Final = 4
TASK_CANCELLED: Final = 5
ITEM_TOOL: Final = 1
ITEM_RESOURCE: Final = 2
ITEM_RESOURCE_TEMPLATE: Final = 3
ITEM_PROMPT: Final = 4
ITEM_QUESTION: Final = 5
ITEM_LIST: Final = 6
LIST_SHOWS_ALL: Final = 1

class Runtime: ...
class Transport: ...
class Store: ...
class Server: ...
class Listener: ...
class Exchange: ...
class Bearer: ...
class Call: ...
class Session: ...
class Request: ...
class Task: ...
class Content: ...
class Wire: ...
class Shelf: ...

@final
class SegmentQueue:
    """The segments of a request that were not read yet. `half` is the number of segments
    after which the reader grants new credit."""

    def __init__(self, half: int) -> None: ...
    def __len__(self) -> int: ...
    def extend(self, segments: list[Segment], /) -> None: ...
    def take(self) -> Segment: ...  # raises IndexError when the queue is empty
    def take_all(self) -> list[Segment]: ...
    def clear(self) -> None: ...
    def settle(self) -> int: ...  # how many segments were taken since the last call
    @property
    def last(self) -> int: ...  # number of the last segment that was taken, or 0
    @property
    def newest(self) -> int: ...  # number of the last segment that arrived, or 0
    @property
    def is_due(self) -> bool: ...  # True = half of the window was taken

@final
class NextSegment(Coroutine[Any, Any, Segment]):
    """One step of a loop over segments. It takes its segment when it is awaited."""

    def __await__(self) -> Generator[Any, Any, Segment]: ...
    def send(self, value: Any, /) -> Any: ...
    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any: ...
    def close(self) -> None: ...

class SegmentReader:
    """The base class of readers of segments. `_flow` is the running request, which has a
    SegmentQueue in its attribute `queue`, and a method `refill`. A subclass has a method
    `_next_later`, a coroutine that waits for the next segment."""

    _flow: Any
    def __anext__(self) -> NextSegment: ...

class Segment:
    """One segment of a streamed result (segue_segment_*). A segment never changes."""

    @property
    def number(self) -> int:
        """The number of the segment: 1, 2, 3, ...."""
    @property
    def index(self) -> int:
        """Index of the block in the result's content, from 0."""
    @property
    def replaces(self) -> bool:
        """True = the segment discards all earlier segments."""
    @property
    def type(self) -> str:
        """Type of the block, such as "text"; "" = no type."""
    @property
    def data(self) -> bytes:
        """The content block as JSON."""
    @property
    def text(self) -> str | None:
        """Decoded text; None = the block is no text."""
    @property
    def content(self) -> Any:
        """The block, decoded by set_block_decoder's function."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __str__(self) -> str: ...  # the text, or ""

# ---- options: segue.h explains each member ----

class RuntimeOptions(TypedDict, total=False):
    log_level: int | None
    max_message_bytes: int | None
    max_depth: int | None
    max_queue_bytes: int | None
    lend_input: bool | None
    camel_case: bool | None

class ObserverOptions(TypedDict, total=False):
    level: int | None
    max_argument_bytes: int | None

class SpawnOptions(TypedDict, total=False):
    argv: Sequence[str]
    env: Sequence[str] | None  # "NAME=value"
    working_dir: str | None
    restart: bool | None
    close_timeout_ms: int | None
    terminate_timeout_ms: int | None

class HttpOptions(TypedDict, total=False):
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    key_password: str | None
    proxy: str | None
    unix_socket: str | None
    insecure: bool | None
    http1: bool | None
    max_connections: int | None
    connect_timeout_ms: int | None
    silence_timeout_ms: int | None
    # HTTP+SSE of 2024-11-05: 0 = if the server refuses initialize, 1 = never, 2 = only
    http_sse: int | None

class OauthOptions(TypedDict, total=False):
    # how the client authorizes: 0 = code, 1 = client_credentials, 2 = assertion
    grant: int | None
    client_id: str | None
    client_secret: str | None
    private_key: str | None
    issuer: str | None
    client_metadata_url: str | None
    client_name: str | None
    redirect_uri: str | None
    scope: str | None
    auth_method: str | None
    no_registration: bool | None
    allow_private_addresses: bool | None
    consent_timeout_ms: int | None

class StoreOptions(TypedDict, total=False):
    durability: int | None  # durability of a commit: 0 = normal, 1 = full
    max_bytes: int | None
    busy_timeout_ms: int | None
    timeout_ms: int | None
    lease_ms: int | None
    max_principal_operations: int | None
    max_principal_bytes: int | None

class ServerOptions(TypedDict, total=False):
    name: str | None
    version: str | None
    title: str | None
    instructions: str | None
    store: Store | None
    page_size: int | None
    max_result_bytes: int | None
    max_log_bytes: int | None
    max_segments: int | None
    max_inputs: int | None
    max_tasks: int | None
    max_requests: int | None
    max_streams: int | None
    max_ttl_ms: int | None
    grace_ms: int | None
    lookups_per_second: int | None
    input_wait_ms: int | None
    dialects_on: int | None
    dialects_off: int | None
    draft_ways: int | None
    fetches_per_second: int | None
    list_ttl_ms: int | None
    list_scope: int | None
    seal_key: bytes | None
    seal_key_before: bytes | None
    question_ttl_ms: int | None
    max_events: int | None
    max_event_bytes: int | None
    event_ttl_ms: int | None
    max_principal_requests: int | None
    max_principal_bytes: int | None
    max_server_requests: int | None
    max_server_bytes: int | None
    first_turn_ms: int | None
    log_level: str | None
    tool_wait_ms: int | None

class ItemOptions(TypedDict, total=False):
    flags: int | None
    task: int | None  # a call becomes a task: 0 = never, 1 = may, 2 = must
    ttl_ms: int | None
    poll_ms: int | None
    promote_after_ms: int | None
    read_ttl_ms: int | None
    read_scope: int | None
    scopes: str | None
    resume_min_wait_ms: int | None
    resume_max_wait_ms: int | None
    # 0 = visible, 1 = served but not listed, 2 = listed but not served
    visibility: int | None

class ListenOptions(TypedDict, total=False):
    address: str | None
    port: int | None
    reuse_port: bool | None
    path: str | None
    health_path: str | None
    cert_file: str | None
    key_file: str | None
    client_ca_file: str | None
    client_cert_required: bool | None
    hosts: str | None
    origins: str | None
    cors: bool | None
    unauthenticated_tasks: bool | None
    max_header_bytes: int | None
    max_connections: int | None
    max_streams: int | None
    max_sessions: int | None
    session_idle_ms: int | None
    max_replay_bytes: int | None
    idle_timeout_ms: int | None
    header_timeout_ms: int | None
    body_timeout_ms: int | None
    write_timeout_ms: int | None
    keepalive_ms: int | None
    stream_after_ms: int | None
    drain_ms: int | None
    ready_path: str | None
    live_path: str | None
    lenient_headers: bool | None
    tokens_file: str | None
    idle_drain_ms: int | None
    metrics_path: str | None
    board_path: str | None
    board_read_only: bool | None
    board_redact: bool | None
    board_token: str | None

class BearerOptions(TypedDict, total=False):
    resource: str | None
    authorization_servers: str
    scopes_supported: str | None
    required_scopes: str | None
    implied_scopes: str | None
    resource_name: str | None
    documentation: str | None
    check_timeout_ms: int | None
    issuer: str | None
    audience: str | None
    algorithms: str | None
    jwks: str | None
    jwks_file: str | None
    jwks_url: str | None
    ca_file: str | None
    access_tokens_only: bool | None
    leeway_ms: int | None
    jwks_age_ms: int | None
    jwks_refresh_ms: int | None
    max_tokens: int | None

class SessionOptions(TypedDict, total=False):
    name: str | None
    version: str | None
    capabilities: str | None  # JSON object
    era: int | None  # protocol era: 0 = auto, 1 = modern, 2 = legacy
    probe_timeout_ms: int | None
    request_timeout_ms: int | None
    max_reconnects: int | None
    first_attempts: int | None
    reconnect_timeout_ms: int | None
    max_result_bytes: int | None
    max_requests: int | None
    no_idempotency: bool | None
    no_tasks: bool | None
    fill_defaults: bool | None
    cache_bytes: int | None
    dialects_off: int | None
    dialects_on: int | None
    host: Server | None
    # accepted response modes: a set of RESPONSE_... bits, 0 = all
    response_modes: int | None

class RequestOptions(TypedDict, total=False):
    timeout_ms: int | None
    # after a timeout: 0 = leave a task running, 1 = cancel the task
    on_timeout: int | None
    credit: int | None
    discard: bool | None
    log_level: str | None
    idempotency_key: str | None
    ttl_ms: int | None
    unordered: bool | None
    no_cache: bool | None
    # accepted response modes: a set of RESPONSE_... bits, 0 = those of the session
    response_modes: int | None
    seen: int | None  # number of the last segment that the application has handled
    no_idempotency: bool | None  # True = send no idempotency key
    capabilities: str | None  # JSON object, declared by the request in 2026-07-28
    no_task: bool | None  # True = the call asks for no task

# StoreRecord has the members of a store's record: id (16 bytes), task id, idempotency key
# (32 bytes) or None, principal (32 bytes), ended, created_ms, purge_ms, data. StoreEntry
# has the members of a log entry: seq, segment, event, kind, at_ms, data.
StoreRecord = tuple[bytes, str, bytes | None, bytes, int, int, int, bytes]
StoreEntry = tuple[int, int, int, int, int, bytes]
# The members of a write: kind (1 create, 2 append, 3 end, 4 delete, 5 release, 6 drop, 7
# taken), id, record (of a create) or None, entry or None (an end, drop or taken uses only
# its numbers), purge_ms (of an end). segue_ext.h says what each kind does.
StoreWrite = tuple[int, bytes, StoreRecord | None, StoreEntry | None, int]

# An item of a store's change feed: kind (1 grew, 2 letter = forwarded command, 3 orphans,
# 4 missed, 5 doubt), operation id or None, number of a letter, data or None.
StoreNews = tuple[int, bytes | None, int, bytes | None]

class CustomStore(Protocol):
    def commit(self, writes: list[StoreWrite], /) -> object: ...
    def find(self, task_id: str | None, key: bytes | None, /) -> StoreRecord | None: ...
    def read(self, id: bytes, after: int, /) -> Iterable[StoreEntry]: ...
    def claim(self) -> Iterable[StoreRecord]: ...
    # Optional members:
    # leased: bool    True = while this server cannot reach the store, other servers take
    #                 over its operations. Such a store needs follow, post and news.
    # forgets: bool   True = the data is lost when the process ends
    # record_format: int   The newest format of records and entries that a server may
    #                 write: 1 or 2 (core/docs/upgrades.md). It is read when the store is
    #                 made and after each method of the store, and must never decrease.
    #                 Without it servers write the newest format that they know.
    # def follow(self, id: bytes, on: bool, /) -> object: ...
    # def post(self, id: bytes, data: bytes, /) -> object: ...
    # def news(self) -> tuple[Iterable[StoreNews], int]: ...   the change feed items,
    #     and the ms after which news is called again; store_wake causes an earlier call
    # def stats(self) -> tuple[int, int, int, int]: ...   numbers of stored operations,
    #     bytes, evicted operations and purged operations
    # def purge(self, now_ms: int, /) -> int | None: ...
    # def list(
    #     self, principal: bytes, created_ms: int, task_id: str | None, /
    # ) -> Iterable[StoreRecord]: ...

# A function that checks a value against a schema. The arguments are the tool's name, 1
# (the value is the arguments of a call) or 2 (the value is a result), the schema and the
# value. The function returns None when the value fits, a text with the reason when it
# does not fit, or NotImplemented when the check is not possible.
Validate = Callable[[str, int, bytes, bytes], Any]
Principal = Callable[[Transport], str | None]

# ---- library ----

def version() -> str: ...
def status_name(status: int) -> str: ...
def set_error_factory(
    factory: Callable[[int, str, int, bytes | None, bool], BaseException] | None, /
) -> None:
    """Sets the function that makes this module's exceptions. The function gets status,
    message, code, data and retryable. message is "" when the error has no details.
    """

def set_block_decoder(callable: Callable[[bytes], object] | None, /) -> None:
    """Sets the function that makes Segment.content from the block's JSON."""

def option_names() -> dict[str, list[str]]:
    """Returns the member names that the dict of each options struct may have."""

def live_handles() -> dict[str, int]:
    """Returns the number of existing handles, by kind, for leak checks."""

def allocated() -> int:
    """Returns the number of bytes that tracked runtimes (runtime_new) hold, for leak
    checks."""

# ---- runtime ----

def runtime_new(
    options: RuntimeOptions | None = None,
    log: Handler | None = None,
    track: bool = False,
) -> Runtime: ...
def runtime_observe(
    runtime: Runtime, handler: Handler | None, options: ObserverOptions | None = None
) -> None:
    """Gives the events of the runtime to a handler (RUNTIME_EVENT); None = to nobody."""

def runtime_run(runtime: Runtime) -> list[Event]:
    """Runs the runtime on the calling thread, without the GIL, until runtime_stop. A
    Python program normally uses runtime_start instead.
    """

def runtime_start(runtime: Runtime) -> None: ...
def runtime_fd(runtime: Runtime) -> int:
    """Returns the wake-up descriptor, which is readable while runtime_dispatch has
    events. Never read from the descriptor."""

def runtime_side_fd(runtime: Runtime) -> int:
    """Returns a second descriptor, which is readable for events that do not come from the
    I/O loop: log lines, custom transports."""

def runtime_dispatch(
    runtime: Runtime, timeout_ms: int = 0, max_events: int = 256, /
) -> list[Event]:
    """Returns the events of at most max_events callbacks of the library.

    Raises ClosedError when the runtime was stopped and no events are left.
    """

def runtime_cork(runtime: Runtime, /) -> None:
    """Holds back outgoing messages until runtime_uncork. Calls may be nested."""

def runtime_uncork(runtime: Runtime, /) -> None:
    """Sends the messages that runtime_cork holds back. Raises StateError if runtime_cork
    was not called.
    """

def runtime_stop(runtime: Runtime) -> None: ...
def runtime_free(runtime: Runtime) -> list[Event]:
    """Joins the threads of the runtime and returns the last events, among them CLOSED and
    COMPLETE for everything that was open."""

def runtime_authorize(runtime: Runtime, redirect_url: str) -> None: ...

# ---- transports ----

def transport_pair(runtime: Runtime) -> tuple[Transport, Transport]: ...
def transport_stdio(runtime: Runtime) -> Transport: ...
def transport_fds(runtime: Runtime, fd_in: int, fd_out: int) -> Transport: ...
def transport_spawn(
    runtime: Runtime, options: SpawnOptions, handler: Handler | None = None
) -> Transport:
    """Makes a transport that starts a child process. The handler receives STDERR events,
    the last one without a line: the child has ended, and nothing more comes of it.
    Without a handler the child writes to the standard error of this process.
    """

def transport_http(
    runtime: Runtime,
    url: str,
    options: HttpOptions | None = None,
    on_headers: Callable[[Transport, int], object] | None = None,
) -> Transport: ...
def transport_set_header(transport: Transport, name: str, value: str | None) -> None: ...
def transport_set_oauth(
    transport: Transport,
    options: OauthOptions,
    handler: Handler | None = None,  # receives AUTHORIZE
    # arguments: issuer, resource
    on_assertion: Callable[[str, str], str | None] | None = None,
    on_load: Callable[[str], str | None] | None = None,  # argument: key
    on_save: Callable[[str, str], object] | None = None,  # arguments: key, json
) -> None: ...
def transport_header(transport: Transport, name: str) -> str | None:
    """Returns a header of the caller's HTTP request. This function may be called only
    inside the hooks principal and on_bearer.
    """

def transport_peer(transport: Transport) -> str:
    """Returns a text that identifies the caller. This function may be called only inside
    the hooks principal and on_bearer.
    """

def transport_free(transport: Transport, /) -> None: ...
def transport_custom(
    runtime: Runtime, handler: Handler, reopen: bool = False
) -> Transport:
    """Makes a custom transport. The handler receives the TRANSPORT_ events. reopen: True
    = a lost connection can be opened again.
    """

def transport_feed(wire: Wire, data: bytes) -> bool:
    """Passes input to the library. Returns False when too much input already waits. The
    event TRANSPORT_PAUSE with False then says when to continue.
    """

def transport_took(wire: Wire, count: int) -> None:
    """Reports that this many bytes of TRANSPORT_SEND were written. The library passes
    more bytes to send while fewer than 1 MiB are unwritten.
    """

def transport_writable(wire: Wire) -> None: ...
def transport_closed(wire: Wire) -> None: ...

# ---- stores ----

def store_memory(options: StoreOptions | None = None) -> Store: ...
def store_sqlite(path: str, options: StoreOptions | None = None) -> Store: ...
def store_redis(url: str, options: StoreOptions | None = None) -> Store: ...
def store_postgres(url: str, options: StoreOptions | None = None) -> Store: ...
def store_custom(
    store: CustomStore, options: StoreOptions | None = None
) -> tuple[Store, Shelf]:
    """Makes a store from an object of your own. The methods of the object run in
    store_serve. If a method raises an exception of Segue (ExistsError, NotFoundError,
    ...), the call of the store fails with the ``status`` of the exception. For any other
    exception the call fails with StoreError, and the traceback goes to
    sys.unraisablehook. Without the method ``list`` a server has no tasks/list.
    """

def store_serve(shelf: Shelf) -> None:
    """Runs the methods of a store on the calling thread until the store is closed. Call
    this function on a daemon thread that starts before the store is used. On a second
    thread the function raises StateError.
    """

def store_wake(shelf: Shelf) -> None:
    """Reports that the store's change feed has items. The library then calls the ``news``
    method soon. May be called from any thread."""

def store_free(store: Store, /) -> None: ...

# ---- content ----

def content_new(runtime: Runtime) -> Content: ...
def content_add_text(content: Content, text: str) -> None: ...
def content_add_blob(
    content: Content, type: Literal["image", "audio"], mime_type: str, data: bytes
) -> None: ...
def content_add_json(content: Content, json: Json) -> None: ...
def content_add_resource_text(
    content: Content, uri: str, mime_type: str | None, text: str
) -> None: ...
def content_add_resource_blob(
    content: Content, uri: str, mime_type: str | None, data: bytes
) -> None: ...
def content_set_role(
    content: Content, role: Literal["user", "assistant"] | None
) -> None: ...
def content_set_structured(content: Content, json: Json) -> None: ...
def content_set_error(content: Content, is_error: bool) -> None: ...
def content_free(content: Content, /) -> None: ...

# ---- server ----

def server_new(
    runtime: Runtime,
    options: ServerOptions | None = None,
    handler: Handler | None = None,  # receives IDLE
    principal: Principal | None = None,
    validate: Validate | None = None,
) -> Server: ...
def server_add(
    server: Server,
    item: int,
    json: Json,
    options: ItemOptions | None,
    handler: Handler,
    completion: bool = False,
) -> None:
    """Adds an item. The handler receives CALL for each call. If `completion` is set, the
    handler also receives COMPLETION for each request for suggestions.
    """

def server_check(options: ServerOptions | None) -> None: ...
def item_check(item: int, json: Json, options: ItemOptions | None) -> str | None:
    """Checks an item as `server_add` does. Returns what the specification advises against
    a valid item, or None."""

def server_remove(server: Server, item: int, name: str) -> None: ...
def server_resource_updated(server: Server, uri: str) -> None: ...
def server_stats(server: Server) -> bytes: ...
def server_metrics(server: Server) -> str: ...
def server_watch_clients(server: Server, handler: Handler) -> None:
    """Makes the handler receive CLIENT_OPEN and CLIENT_CLOSED. To be called before the
    server is served."""

def server_attach(server: Server, transport: Transport) -> None: ...
def server_close(server: Server) -> None: ...
def server_free(server: Server, /) -> None: ...
def server_listen(
    server: Server,
    options: ListenOptions | None = None,
    bearer: BearerOptions | None = None,
    on_bearer: Callable[[Bearer, Transport], object] | None = None,
) -> Listener: ...
def listener_url(listener: Listener) -> str: ...
def listener_add(listener: Listener, server: Server, path: str) -> None: ...
def listener_remove(listener: Listener, path: str) -> None: ...
def listener_reload(listener: Listener) -> None: ...
def listener_set_ready(listener: Listener, ready: int) -> None: ...
def listener_close(listener: Listener) -> None: ...
def listener_free(listener: Listener, /) -> None: ...
def listener_open(
    server: Server,
    options: ListenOptions | None = None,
    bearer: BearerOptions | None = None,
    on_bearer: Callable[[Bearer, Transport], object] | None = None,
) -> Listener: ...
def exchange_open(
    listener: Listener,
    method: str,
    target: str,
    headers: Iterable[Sequence[bytes]],
    handler: Handler,
    peer: str | None = None,
    local: str | None = None,
    is_tls: bool = False,
    principal: str | None = None,
    body: bytes | str | None = None,
    is_whole: bool = False,
    context: object = None,
    /,
) -> Exchange: ...

# Returns False when there is no room: feed again after ANSWER_ROOM.
def exchange_feed(exchange: Exchange, data: bytes | str) -> bool: ...
def exchange_end(exchange: Exchange) -> None: ...
def exchange_sent(exchange: Exchange, len: int) -> None: ...
def exchange_closed(exchange: Exchange) -> None: ...
def exchange_free(exchange: Exchange, /) -> None: ...
def bearer_token(bearer: Bearer) -> str: ...
def bearer_accept(
    bearer: Bearer, principal: str, scopes: str | None = None, expires_ms: int = 0
) -> None: ...
def bearer_refuse(bearer: Bearer, reason: str | None = None) -> None: ...
def bearer_free(bearer: Bearer, /) -> None: ...
def tokens_check(runtime: Runtime, path: str) -> None: ...

# ---- calls ----

def call_method(call: Call) -> str: ...
def call_name(call: Call) -> str: ...
def call_principal(call: Call) -> str: ...
def call_client(call: Call) -> int:
    """Returns the number of the client; 0 = the call is of no session."""

def call_has_scope(call: Call, scope: str) -> bool: ...
def call_params(call: Call) -> bytes: ...
def call_meta(call: Call, key: str) -> bytes | None: ...
def call_header(call: Call, name: str, index: int) -> bytes | None: ...
def call_header_at(call: Call, index: int) -> tuple[str, bytes] | None: ...
def call_context(call: Call) -> Any:
    """Returns the context of the exchange (exchange_open) that made the call."""

def call_argument(call: Call, name: str) -> bytes | None: ...
def call_argument_text(call: Call, name: str) -> str | None: ...
def call_argument_int(call: Call, name: str) -> int | None: ...
def call_watch(call: Call, handler: Handler) -> None:
    """Sets the handler of the call's events: CANCEL, at most once, and DRAIN."""

def call_is_cancelled(call: Call, /) -> bool: ...

# A function that sends returns False when there is no room (SEGUE_E_WOULD_BLOCK). Then
# nothing was sent, and DRAIN (see call_watch) follows when there is room.

def call_send(call: Call, content: Content) -> bool: ...
def call_send_text(call: Call, text: str, /) -> bool: ...
def call_extend_text(call: Call, index: int, text: str, /) -> bool: ...
def call_send_json(call: Call, json: Json, /) -> bool:
    """Sends one block, as call_send does with a content that has only this block."""

def call_replace(call: Call) -> bool: ...
def call_set_field(call: Call, name: str, json: Json) -> bool: ...
def call_set_completion(
    call: Call, values: Sequence[str], total: int = -1, has_more: bool = False
) -> bool: ...
def call_progress(
    call: Call, progress: float, total: float = 0, message: str | None = None
) -> None: ...
def call_log(call: Call, level: str, json: Json) -> None: ...
def call_log_json(call: Call, json: Json) -> None: ...
def call_log_level(call: Call) -> str | None: ...
def call_complete_json(call: Call, json: Json) -> None: ...
def call_set_status(call: Call, message: str) -> bool: ...
def call_require_input(
    call: Call, key: str | None, method: str, params: Json | None, handler: Handler
) -> None:
    """Asks the client a question. The handler receives the answer as INPUT."""

def call_hang_up(call: Call, retry_ms: int = 0) -> None: ...
def call_end_turn(call: Call) -> None: ...
def call_set_trace_parent(call: Call, trace_parent: str) -> None: ...
def call_trace_parent(call: Call) -> str | None: ...
def call_defer(call: Call, ttl_ms: int = 0) -> None: ...
def call_checkpoint(call: Call, data: bytes) -> bool: ...
def call_resumed(call: Call) -> tuple[int, bytes | None] | None:
    """Returns the number of the last segment and the checkpoint of the task's earlier
    run. Returns None on the first run.
    """

def call_complete(call: Call, content: Content | None = None) -> None: ...
def call_reply(
    call: Call,
    text: str | None = None,
    blocks: Sequence[Json] | None = None,
    structured: Json | None = None,
    is_error: bool = False,
    /,
) -> None:
    """Completes and frees the call in one step, for the common case. The content is a
    text block, then the blocks given as JSON, and structuredContent. When the
    function raises, the call is unchanged: the caller must end the call in another
    way and free it.
    """

def call_fail(call: Call, code: int, message: str, data: Json | None = None) -> None: ...
def call_free(call: Call, /) -> None: ...

# ---- client ----

# ``events`` is a mask of the events that the handler receives. OPEN, CLOSED and COMPLETE
# are always delivered; other events are delivered only if their bit is set. Without
# QUESTION the library tells the server that the client answers no questions.

def session_open(
    runtime: Runtime,
    transport: Transport,
    options: SessionOptions | None = None,
    handler: Handler | None = None,
    events: int = -1,
    validate: Validate | None = None,
) -> Session: ...
def session_peer(session: Session) -> bytes: ...
def session_notify(session: Session, method: str, params: Json | None = None) -> None: ...
def session_take_input(
    session: Session, handler: Handler | None, events: int = -1
) -> Request: ...
def session_close(session: Session) -> None: ...
def session_free(session: Session, /) -> None: ...
def request_start(
    session: Session,
    method: str,
    params: Json | None,
    options: RequestOptions | None,
    handler: Handler | None,
    events: int = -1,
    /,
) -> Request: ...
def request_resume(
    session: Session,
    token: str,
    options: RequestOptions | None,
    handler: Handler | None,
    events: int = -1,
) -> Request: ...
def request_token(request: Request) -> str: ...

# Returns the `era` of the sessions that can resume the token; 0 = all can.
def token_era(runtime: Runtime, token: str) -> int: ...
def request_meta(request: Request, key: str) -> bytes | None: ...
def request_answer(request: Request, key: str, json: Json) -> None: ...
def request_answer_error(
    request: Request, key: str, code: int, message: str, data: Json | None = None
) -> None: ...
def request_grant(request: Request, n: int, /) -> None: ...
def request_cancel(request: Request, /) -> None: ...
def request_detach(request: Request) -> None: ...
def request_free(request: Request, /) -> None: ...
def task_attach(session: Session, task_id: str) -> Task: ...
def task_attach_token(session: Session, token: str) -> Task: ...
def task_id(task: Task) -> str: ...
def task_get(task: Task, handler: Handler | None, events: int = -1) -> Request: ...
def task_get_state(task: Task) -> int: ...
def task_watch(
    task: Task,
    options: RequestOptions | None,
    handler: Handler | None,
    events: int = -1,
) -> Request: ...
def task_cancel(task: Task, handler: Handler | None, events: int = -1) -> Request: ...
def task_free(task: Task, /) -> None: ...
