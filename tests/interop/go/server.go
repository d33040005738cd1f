package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const died = 3 // how the tool `die` ends the process

type (
	none struct{}
	name struct {
		Name string `json:"name,omitempty"`
	}
	content struct {
		Text string `json:"text"`
	}
	size struct {
		Bytes int `json:"bytes"`
	}
	numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	sum struct {
		Sum int `json:"sum"`
	}
	walk struct {
		N       int `json:"n"`
		DelayMs int `json:"delayMs"`
	}
)

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

// add registers a tool without structured output.
func add[In any](server *mcp.Server, tool string,
	run func(ctx context.Context, call *mcp.CallToolRequest, given In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: tool},
		func(ctx context.Context, call *mcp.CallToolRequest, given In) (*mcp.CallToolResult, any, error) {
			result, err := run(ctx, call, given)
			return result, nil, err
		})
}

// answer registers a tool that has its result at once.
func answer[In any](server *mcp.Server, tool string, run func(given In) *mcp.CallToolResult) {
	add(server, tool, func(_ context.Context, _ *mcp.CallToolRequest, given In) (*mcp.CallToolResult, error) {
		return run(given), nil
	})
}

func takeSteps(ctx context.Context, call *mcp.CallToolRequest, given walk) (*mcp.CallToolResult, error) {
	token := call.Params.GetProgressToken()
	for at := 1; at <= given.N; at++ {
		time.Sleep(time.Duration(given.DelayMs) * time.Millisecond)
		message := &mcp.LoggingMessageParams{Level: "info", Data: map[string]int{"step": at}}
		if err := call.Session.Log(ctx, message); err != nil {
			return nil, err
		}
		if token == nil {
			continue
		}
		if err := call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(at), Total: float64(given.N)}); err != nil {
			return nil, err
		}
	}
	return text("arrived"), nil
}

func media(none) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.ImageContent{Data: []byte("\x89PNG"), MIMEType: "image/png"},
		&mcp.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: "test://x", MIMEType: "text/plain", Text: "inside"}},
	}}
}

func makeServer(versions []string) *mcp.Server {
	options := &mcp.ServerOptions{SupportedProtocolVersions: versions}
	itemOptions(options)
	server := mcp.NewServer(&mcp.Implementation{Name: "judged", Version: "1.0.0"}, options)
	answer(server, "greet", func(given name) *mcp.CallToolResult {
		if given.Name == "" {
			given.Name = "World"
		}
		return text("Hello, " + given.Name + "!")
	})
	answer(server, "repeat", func(given content) *mcp.CallToolResult { return text(given.Text) })
	answer(server, "big", func(given size) *mcp.CallToolResult {
		return text(strings.Repeat("x", given.Bytes))
	})
	mcp.AddTool(server, &mcp.Tool{Name: "add"},
		func(_ context.Context, _ *mcp.CallToolRequest, given numbers) (*mcp.CallToolResult, sum, error) {
			return nil, sum{given.A + given.B}, nil
		})
	add(server, "steps", takeSteps)
	answer(server, "media", media)
	answer(server, "fail", func(none) *mcp.CallToolResult {
		result := text("failed on purpose")
		result.IsError = true
		return result
	})
	add(server, "hang", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	answer(server, "die", func(none) *mcp.CallToolResult {
		os.Exit(died)
		return nil
	})
	addToggle(server)
	addItems(server)
	return server
}

// The tool `toggle` adds the tool `extra`, or removes it again.
func addToggle(server *mcp.Server) {
	var lock sync.Mutex
	there := false
	answer(server, "toggle", func(none) *mcp.CallToolResult {
		lock.Lock()
		defer lock.Unlock()
		if there {
			server.RemoveTools("extra")
		} else {
			answer(server, "extra", func(none) *mcp.CallToolResult { return text("extra") })
		}
		there = !there
		return text("changed")
	})
}

// handler offers resumable sessions to clients of the handshake eras. The SDK speaks
// 2026-07-28 only where it has no sessions.
func handler(server *mcp.Server) http.Handler {
	handle := func(options mcp.StreamableHTTPOptions) http.Handler {
		options.MaxRequestBodyBytes = 16 << 20
		return mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return server }, &options)
	}
	sessions := handle(mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	modern := handle(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
}

// serveHTTP prints its URL.
func serveHTTP(server *mcp.Server, port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, handler(server))
}

func serve(args []string) {
	var versions []string
	port := ""
	for at := 0; at+1 < len(args); at += 2 {
		if args[at] == "--versions" {
			versions = strings.Split(args[at+1], ",")
		} else {
			port = args[at+1]
		}
	}
	server := makeServer(versions)
	var err error
	if port != "" {
		err = serveHTTP(server, port)
	} else {
		err = server.Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}
