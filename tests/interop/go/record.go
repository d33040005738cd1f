package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A step is [method, argument...].
type step []json.RawMessage

// part reads a part of the step into value; without it the value stays as it is.
func (s step) part(at int, value any) error {
	if at >= len(s) {
		return nil
	}
	return json.Unmarshal(s[at], value)
}

// all returns the items of all pages.
func all[T any](pages iter.Seq2[T, error]) (any, error) {
	found := []T{}
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		found = append(found, item)
	}
	return found, nil
}

func do(ctx context.Context, session *mcp.ClientSession, s step) (any, error) {
	var method, name string
	if err := s.part(0, &method); err != nil {
		return nil, err
	}
	if err := s.part(1, &name); err != nil {
		return nil, err
	}
	switch method {
	case "hello":
		about := session.InitializeResult()
		server := about.ServerInfo
		if server == nil {
			server = &mcp.Implementation{}
		}
		return given{"name": server.Name, "instructions": about.Instructions}, nil
	case "tools/list":
		return all(session.Tools(ctx, nil))
	case "prompts/list":
		return all(session.Prompts(ctx, nil))
	case "resources/list":
		return all(session.Resources(ctx, nil))
	case "resources/templates/list":
		return all(session.ResourceTemplates(ctx, nil))
	case "resources/read":
		return session.ReadResource(ctx, &mcp.ReadResourceParams{URI: name})
	case "prompts/get":
		var arguments map[string]string
		if err := s.part(2, &arguments); err != nil {
			return nil, err
		}
		return session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	case "tools/call":
		arguments := given{}
		if err := s.part(2, &arguments); err != nil {
			return nil, err
		}
		return callOf(ctx, session, name, arguments)
	}
	return nil, fmt.Errorf("no step %s", method)
}

// record does what it is told and prints what it gets; ../through_record.py explains more.
func record(era string, server []string) error {
	var steps []step
	if err := json.NewDecoder(os.Stdin).Decode(&steps); err != nil {
		return err
	}
	j := &judgeClient{version: versionOf(era), server: server}
	session, err := j.open(context.Background(), j.version)
	if err != nil {
		return err
	}
	defer session.Close()
	out := json.NewEncoder(os.Stdout)
	for _, s := range steps {
		ctx, done := context.WithTimeout(context.Background(), 5*time.Minute)
		result, err := do(ctx, session, s)
		done()
		line := given{"result": result}
		if err != nil {
			line = given{"error": strings.Join(strings.Fields(err.Error()), " ")}
		}
		if err := out.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
