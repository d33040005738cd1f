// Command bench is the peer of `make bench-peers` on the Go SDK: a stateless server over
// HTTP with the tools echo and report. It prints its port, and then its version.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const sdk = "github.com/modelcontextprotocol/go-sdk"

type (
	content struct {
		Text string `json:"text"`
	}
	count struct {
		N int `json:"n"`
	}
)

func text(value string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: value}}}
}

func echo(_ context.Context, _ *mcp.CallToolRequest, given content) (*mcp.CallToolResult, any, error) {
	return text(given.Text), nil, nil
}

func report(ctx context.Context, call *mcp.CallToolRequest, given count) (*mcp.CallToolResult, any, error) {
	token := call.Params.GetProgressToken()
	for at := 1; at <= given.N; at++ {
		if err := call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(at), Total: float64(given.N)}); err != nil {
			return nil, nil, err
		}
	}
	return text("done"), nil, nil
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == sdk {
			return module.Version
		}
	}
	return "unknown"
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, echo)
	mcp.AddTool(server, &mcp.Tool{Name: "report"}, report)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Printf("%d\nGo SDK %s\n", listener.Addr().(*net.TCPAddr).Port, version())
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true})
	fmt.Fprintln(os.Stderr, "bench:", http.Serve(listener, handler))
	os.Exit(1)
}
