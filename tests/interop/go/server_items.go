package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var form = &mcp.ElicitParams{Mode: "form", Message: "Your name?", RequestedSchema: given{"type": "object",
	"properties": given{"name": given{"type": "string"}}}}

// itemOptions sets the options for resources that change and for completions.
func itemOptions(options *mcp.ServerOptions) {
	options.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	options.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	options.CompletionHandler = func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		var values []string
		for _, word := range []string{"paris", "park", "london"} {
			if strings.HasPrefix(word, r.Params.Argument.Value) {
				values = append(values, word)
			}
		}
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
	}
}

func addItems(server *mcp.Server) {
	addResources(server)
	addPrompts(server)
	addQuestions(server)
	addChanges(server)
}

// contents makes a handler that has contents for any URI.
func contents(of func(uri string) *mcp.ResourceContents) mcp.ResourceHandler {
	return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{of(r.Params.URI)}}, nil
	}
}

func addResources(server *mcp.Server) {
	server.AddResource(&mcp.Resource{URI: updatedURI, Name: "static-text", MIMEType: "text/plain"},
		contents(func(uri string) *mcp.ResourceContents {
			return &mcp.ResourceContents{URI: uri, MIMEType: "text/plain",
				Text: "This is the content of the static text resource."}
		}))
	server.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"},
		contents(func(uri string) *mcp.ResourceContents {
			return &mcp.ResourceContents{URI: uri, MIMEType: "image/png", Blob: []byte("\x89PNG\x00")}
		}))
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template"},
		contents(func(uri string) *mcp.ResourceContents {
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			return &mcp.ResourceContents{URI: uri, Text: "Data of " + id}
		}))
}

func addPrompts(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: "arguments", Arguments: []*mcp.PromptArgument{
		{Name: "arg1", Required: true}, {Name: "arg2"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			said := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
				r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: said}}}}, nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "blocks"},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			inside := &mcp.ResourceContents{URI: "test://x", Text: "Embedded."}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")}},
				{Role: "user", Content: &mcp.EmbeddedResource{Resource: inside}}}}, nil
		})
}

func toldName(answer *mcp.ElicitResult) string {
	if name, ok := answer.Content["name"]; ok {
		return fmt.Sprint(answer.Action, " ", name)
	}
	return answer.Action
}

// addQuestion makes a tool that ends the call with its question and is run again. In the
// handshake eras the SDK sends the question itself, once.
func addQuestion(server *mcp.Server, tool string, request mcp.InputRequest, tell func(answer mcp.InputResponse) string) {
	add(server, tool, func(_ context.Context, call *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		if answer, ok := call.Params.InputResponses[tool]; ok {
			return text(tell(answer)), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{tool: request}}, nil
	})
}

func addQuestions(server *mcp.Server) {
	addQuestion(server, "ask_name", form, func(answer mcp.InputResponse) string {
		return toldName(answer.(*mcp.ElicitResult))
	})
	thought := &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "Say something."}}}}
	addQuestion(server, "ask_model", thought, func(answer mcp.InputResponse) string {
		switch said := answer.(type) {
		case *mcp.CreateMessageResult:
			return said.Model + ": " + said.Content.(*mcp.TextContent).Text
		case *mcp.CreateMessageWithToolsResult:
			return said.Model + ": " + said.Content[0].(*mcp.TextContent).Text
		}
		return fmt.Sprintf("%T", answer)
	})
	addQuestion(server, "ask_roots", &mcp.ListRootsParams{}, func(answer mcp.InputResponse) string {
		var uris []string
		for _, root := range answer.(*mcp.ListRootsResult).Roots {
			uris = append(uris, root.URI)
		}
		return strings.Join(uris, ",")
	})
	add(server, "ask_twice", askTwice)
}

func askTwice(ctx context.Context, call *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if call.Session.InitializeParams().ProtocolVersion < modernVersion {
		var names []string
		for range 2 {
			answer, err := call.Session.Elicit(ctx, form)
			if err != nil {
				return nil, err
			}
			names = append(names, fmt.Sprint(answer.Content["name"]))
		}
		return text(strings.Join(names, " and ")), nil
	}
	again := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": form}, RequestState: "begun"}
	before := call.Params.RequestState
	if before == "" {
		return again, nil
	}
	answer, ok := call.Params.InputResponses["name"].(*mcp.ElicitResult)
	if !ok {
		return nil, errors.New("no answer")
	}
	name := fmt.Sprint(answer.Content["name"])
	if before == "begun" {
		again.RequestState = name
		return again, nil
	}
	return text(before + " and " + name), nil
}

// The tool `toggle_items` adds the resource and the prompt `extra`, or removes them
// again.
func addChanges(server *mcp.Server) {
	add(server, "update", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: updatedURI})
		return text("updated"), err
	})
	var lock sync.Mutex
	there := false
	answer(server, "toggle_items", func(none) *mcp.CallToolResult {
		lock.Lock()
		defer lock.Unlock()
		if there {
			server.RemoveResources("test://extra")
			server.RemovePrompts("extra")
		} else {
			server.AddResource(&mcp.Resource{URI: "test://extra", Name: "extra"},
				contents(func(uri string) *mcp.ResourceContents { return &mcp.ResourceContents{URI: uri} }))
			server.AddPrompt(&mcp.Prompt{Name: "extra"},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return &mcp.GetPromptResult{}, nil
				})
		}
		there = !there
		return text("changed")
	})
}
