package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25"
	big           = 8 << 20
	noMethod      = "no/such_method"
	odd           = "snow \u2603, emoji \U0001F600, tab\t, newline\n, nul \x00, quote \" \\ \u2028"
)

type given = map[string]any

// A judgeClient has one session that most cells use.
type judgeClient struct {
	version string
	server  []string // a command or one URL
	session *mcp.ClientSession

	lock     sync.Mutex
	progress []*mcp.ProgressNotificationParams
	logs     []*mcp.LoggingMessageParams
	lists    int
	asked    []string // messages of elicitations
	declines bool
	notes    []string // changes of resources and prompts
}

func (j *judgeClient) overHTTP() bool { return strings.HasPrefix(j.server[0], "http") }

func (j *judgeClient) isModern() bool { return j.version == modernVersion }

// count returns how many notifications of a kind have come.
func (j *judgeClient) count(of func() int) func() int {
	return func() int {
		j.lock.Lock()
		defer j.lock.Unlock()
		return of()
	}
}

func (j *judgeClient) transport() mcp.Transport {
	if j.overHTTP() {
		return &mcp.StreamableClientTransport{Endpoint: j.server[0]}
	}
	return &mcp.CommandTransport{Command: exec.Command(j.server[0], j.server[1:]...)}
}

// open makes a separate client; "" lets it find out the version.
func (j *judgeClient) open(ctx context.Context, version string) (*mcp.ClientSession, error) {
	note := func(keep func()) {
		j.lock.Lock()
		defer j.lock.Unlock()
		keep()
	}
	handlers := &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			note(func() { j.lists++ })
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			note(func() { j.logs = append(j.logs, r.Params) })
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			note(func() { j.progress = append(j.progress, r.Params) })
		},
	}
	j.answerQuestions(handlers)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-judge", Version: "1.0.0"}, handlers)
	if err := mcp.AddSendingCustomMethod[*mcp.PingParams, *mcp.CallToolResult](client, noMethod); err != nil {
		return nil, err
	}
	client.AddRoots(&mcp.Root{URI: "file:///judged", Name: "judged"})
	var options *mcp.ClientSessionOptions
	if version != "" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	return client.Connect(ctx, j.transport(), options)
}

func (j *judgeClient) call(ctx context.Context, tool string, arguments given) (*mcp.CallToolResult, error) {
	return callOf(ctx, j.session, tool, arguments)
}

func callOf(ctx context.Context, session *mcp.ClientSession, tool string, arguments given) (*mcp.CallToolResult, error) {
	if arguments == nil {
		arguments = given{} // a nil map would become null
	}
	return session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
}

// expect calls a tool whose text is known.
func (j *judgeClient) expect(ctx context.Context, tool string, arguments given, want string) error {
	return expectOf(ctx, j.session, tool, arguments, want)
}

func expectOf(ctx context.Context, session *mcp.ClientSession, tool string, arguments given, want string) error {
	result, err := callOf(ctx, session, tool, arguments)
	if err != nil {
		return err
	}
	return equal(textOf(result), want, "the text")
}

func (j *judgeClient) greet(ctx context.Context) error {
	return j.expect(ctx, "greet", given{"name": "Ada"}, "Hello, Ada!")
}

func textOf(result *mcp.CallToolResult) string {
	if len(result.Content) > 0 {
		if block, ok := result.Content[0].(*mcp.TextContent); ok {
			return block.Text
		}
	}
	return "no text"
}

// refused wants err to be a JSON-RPC error with that code and, unless nil, that data.
func refused(err error, code int64, data any) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		return fmt.Errorf("no JSON-RPC error but %v", err)
	}
	if err := equal(wire.Code, code, "the code"); err != nil || data == nil {
		return err
	}
	var have any
	json.Unmarshal(wire.Data, &have)
	return equal(have, data, "the data")
}

func (j *judgeClient) connect(ctx context.Context) error {
	var err error
	if j.session, err = j.open(ctx, j.version); err != nil {
		return err
	}
	about := j.session.InitializeResult()
	return equal([]any{about.ProtocolVersion, about.ServerInfo.Name, about.Instructions,
		about.Capabilities.Tools.ListChanged},
		[]any{j.version, "segue-fixture", "Call greet first.", true}, "the server")
}

// openAs connects with a version, and checks that the session works.
func (j *judgeClient) openAs(ctx context.Context, asked, got string) error {
	session, err := j.open(ctx, asked)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := equal(session.InitializeResult().ProtocolVersion, got, "the version"); err != nil {
		return err
	}
	if _, err := session.ListTools(ctx, nil); err != nil {
		return err
	}
	return expectOf(ctx, session, "greet", given{"name": asked}, "Hello, "+asked+"!")
}

func (j *judgeClient) list(ctx context.Context) error {
	var names []string
	cursor, pages := "", 0
	for pages == 0 || cursor != "" {
		page, err := j.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		cursor, pages = page.NextCursor, pages+1
	}
	distinct := map[string]bool{}
	for _, name := range names {
		distinct[name] = true
	}
	return equal([]any{pages > 3, len(distinct), distinct["greet"], distinct["add"], distinct["toggle"]},
		[]any{true, len(names), true, true, true}, "the list")
}

func (j *judgeClient) structured(ctx context.Context) error {
	result, err := j.call(ctx, "add", given{"a": 40, "b": 2})
	if err != nil {
		return err
	}
	return equal(result.StructuredContent, given{"sum": 42}, "structuredContent")
}

func (j *judgeClient) media(ctx context.Context) error {
	result, err := j.call(ctx, "media", nil)
	if err != nil {
		return err
	}
	if len(result.Content) != 4 {
		return fmt.Errorf("%d blocks", len(result.Content))
	}
	image, isImage := result.Content[0].(*mcp.ImageContent)
	_, isAudio := result.Content[1].(*mcp.AudioContent)
	resource, isResource := result.Content[2].(*mcp.EmbeddedResource)
	_, isLink := result.Content[3].(*mcp.ResourceLink)
	if !isImage || !isAudio || !isResource || !isLink {
		return errors.New("the blocks are of other types")
	}
	return equal([]string{string(image.Data), resource.Resource.Text}, []string{"\x89PNG", "inside"}, "what they hold")
}

func (j *judgeClient) isError(ctx context.Context) error {
	result, err := j.call(ctx, "fail", nil)
	if err != nil {
		return err
	}
	return equal([]any{result.IsError, textOf(result)}, []any{true, "failed on purpose"}, "the result")
}

// refuse calls a tool that must be answered with a JSON-RPC error.
func (j *judgeClient) refuse(tool string, code int64, data any) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := j.call(ctx, tool, nil)
		return refused(err, code, data)
	}
}

func (j *judgeClient) seeProgress(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "steps", Arguments: given{"n": 3}}
	params.SetProgressToken("watched")
	if _, err := j.session.CallTool(ctx, params); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return j.count(func() int { return len(j.progress) })() >= 3 }, "progress"); err != nil {
		return err
	}
	var seen [][]any
	for _, p := range j.progress {
		seen = append(seen, []any{p.ProgressToken, p.Progress, p.Total, p.Message})
	}
	var want [][]any
	for n := 1; n <= 3; n++ {
		want = append(want, []any{"watched", n, 3, "a step"})
	}
	return equal(seen, want, "the progress")
}

func (j *judgeClient) setLevel(ctx context.Context, level string) error {
	if j.isModern() {
		return nil
	}
	return j.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

func (j *judgeClient) seeLogs(ctx context.Context) error {
	if err := j.setLevel(ctx, "info"); err != nil {
		return err
	}
	params := &mcp.CallToolParams{Name: "chatty", Arguments: given{"n": 2}}
	if j.isModern() {
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
	}
	if _, err := j.session.CallTool(ctx, params); err != nil {
		return err
	}
	count := j.count(func() int { return len(j.logs) })
	if err := until(ctx, func() bool { return count() > 0 }, "a message"); err != nil {
		return err
	}
	if err := equal([]any{j.logs[0].Level, j.logs[0].Data}, []any{"info", "begin"}, "the message"); err != nil {
		return err
	}
	if err := j.setLevel(ctx, "emergency"); err != nil {
		return err
	}
	if _, err := j.call(ctx, "chatty", nil); err != nil {
		return err
	}
	return equal(count(), 1, "messages, after they were not asked for,")
}

// cancel withdraws a call; a context whose time is over does the same.
func (j *judgeClient) cancel(ctx context.Context) error {
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := j.call(short, "hang_plain", nil); err == nil {
		return errors.New("it was not cancelled")
	}
	return j.greet(ctx)
}

func (j *judgeClient) concurrency(ctx context.Context) error {
	const calls = 20
	var group, slow sync.WaitGroup
	problems := make([]error, calls)
	// the slow call lasts until all the others have ended
	until, stop := context.WithCancel(ctx)
	defer stop()
	var slowProblem error
	slow.Add(1)
	go func() {
		defer slow.Done()
		_, slowProblem = j.call(until, "hang_plain", nil)
	}()
	group.Add(calls)
	for at := range calls {
		name := fmt.Sprint("n", at)
		go func() {
			defer group.Done()
			problems[at] = j.expect(ctx, "greet", given{"name": name}, "Hello, "+name+"!")
		}()
	}
	group.Wait()
	stop()
	slow.Wait()
	if slowProblem == nil {
		return errors.New("the slow call was not cancelled")
	}
	return errors.Join(problems...)
}

func (j *judgeClient) bigResult(ctx context.Context) error {
	result, err := j.call(ctx, "big", given{"bytes": big})
	if err != nil {
		return err
	}
	return equal(len(textOf(result)), big, "the length")
}

func (j *judgeClient) bigArguments(ctx context.Context) error {
	text := strings.Repeat("y", big)
	result, err := j.call(ctx, "echo", given{"text": text})
	if err != nil {
		return err
	}
	return equal(textOf(result) == text, true, "the same text")
}

// In the modern era the client opens a subscription because it has a handler.
func (j *judgeClient) listChanged(ctx context.Context) error {
	count := j.count(func() int { return j.lists })
	before := count()
	if err := j.expect(ctx, "toggle", nil, "changed"); err != nil {
		return err
	}
	return until(ctx, func() bool { return count() > before }, "list_changed")
}

// cutConnections sends its request to the tap on a connection of its own.
func cutConnections(url string) error {
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := own.Post(strings.TrimSuffix(url, "/mcp")+"/cut", "text/plain", nil)
	if err != nil {
		return err
	}
	answer.Body.Close()
	return equal(answer.StatusCode, http.StatusNoContent, "the answer of the tap")
}

// cutStream makes the tap end all connections while a call is answered.
func (j *judgeClient) cutStream(ctx context.Context) error {
	steps := j.count(func() int { return len(j.progress) })
	before := steps()
	params := &mcp.CallToolParams{Name: "steps", Arguments: given{"n": 20, "delayMs": 100}}
	params.SetProgressToken("cut")
	done := make(chan error, 1)
	go func() {
		result, err := j.session.CallTool(ctx, params)
		if err == nil {
			err = equal(textOf(result), "arrived", "the text")
		}
		done <- err
	}()
	if err := until(ctx, func() bool { return steps() > before }, "the first step"); err != nil {
		return err
	}
	if err := cutConnections(j.server[0]); err != nil {
		return err
	}
	err := <-done
	if j.isModern() && err == nil {
		return errors.New("the call has an answer")
	}
	if !j.isModern() && err != nil {
		return err
	}
	return j.greetAgain(ctx)
}

// greetAgain calls until there is an answer. A call may be lost with its connection, or
// with a pooled connection whose end the client has not noticed yet.
func (j *judgeClient) greetAgain(ctx context.Context) error {
	var err error
	for range 20 {
		if err = j.greet(ctx); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// death ends the server, which is started again over HTTP only.
func (j *judgeClient) death(ctx context.Context) error {
	if _, err := j.call(ctx, "die", nil); err == nil {
		return errors.New("it was answered")
	}
	err := j.greetAgain(ctx)
	if err == nil {
		return nil
	}
	if again := j.openAs(ctx, j.version, j.version); again != nil {
		return fmt.Errorf("a new session: %w", again)
	}
	return missing("the client stays without a session: " + err.Error())
}

func (j *judgeClient) cells() []cell {
	legacy, http := !j.isModern(), j.overHTTP()
	taskOnly := int64(-32601)
	if j.isModern() {
		taskOnly = -32021
	}
	cells := []cell{
		{"connect", true, j.connect},
		{"connect: finds the era itself", !legacy, func(ctx context.Context) error {
			return j.openAs(ctx, "", modernVersion)
		}},
		{"ping", legacy, func(ctx context.Context) error { return j.session.Ping(ctx, nil) }},
		{"tools/list: all pages", true, j.list},
		{"tools/list: bad cursor", true, func(ctx context.Context) error {
			_, err := j.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: "nonsense"})
			return refused(err, -32602, nil)
		}},
		{"tools/call", true, j.greet},
		{"tools/call: unicode and control characters", true, func(ctx context.Context) error {
			return j.expect(ctx, "repeat", given{"text": odd}, odd)
		}},
		{"structuredContent", true, j.structured},
		{"content: image, audio, resource, link", true, j.media},
		{"isError", true, j.isError},
		{"error: unknown tool", true, j.refuse("no_such_tool", -32602, nil)},
		{"error: of the handler, with data", true,
			j.refuse("protocol_error_job", -32603, given{"hint": "on purpose"})},
		{"error: a tool that must be a task", true, j.refuse("failing_job", taskOnly, nil)},
		{"error: unknown method", true, func(ctx context.Context) error {
			_, err := mcp.CallCustomMethod[*mcp.PingParams, *mcp.CallToolResult](ctx, j.session, noMethod, &mcp.PingParams{})
			return refused(err, -32601, nil)
		}},
		{"progress", true, j.seeProgress},
		{"log messages", true, j.seeLogs},
		{"cancel", true, j.cancel},
		{"concurrency: 20 calls and a slow one", true, j.concurrency},
		{"large result, 8 MiB", true, j.bigResult},
		{"large arguments, 8 MiB", true, j.bigArguments},
		{"list_changed", true, j.listChanged},
	}
	cells = append(append(cells, j.itemCells()...), cell{"reconnect: a stream is cut", http, j.cutStream})
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26"} {
		cells = append(cells, cell{"protocol version " + version, legacy,
			func(ctx context.Context) error { return j.openAs(ctx, version, version) }})
	}
	return append(cells,
		cell{"reconnect: the server dies", true, j.death},
		cell{"close", true, func(context.Context) error {
			err := j.session.Close()
			if err != nil && !j.overHTTP() {
				return equal(err.Error(), "exit status 3", "the end of the server that died")
			}
			return err
		}})
}

func versionOf(era string) string {
	if era == "legacy" {
		return legacyVersion
	}
	return modernVersion
}

func judge(era string, server []string) {
	j := &judgeClient{version: versionOf(era), server: server}
	runCells(j.cells())
}
