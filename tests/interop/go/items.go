package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const updatedURI = "test://static-text"

var answers = map[string]given{"Your name?": {"name": "Ada"}, "Are you sure?": {"confirm": true},
	"Name?": {}, "What context?": {"context": "here"}}

// answerQuestions makes the client answer questions, and note changes. All under j.lock.
func (j *judgeClient) answerQuestions(options *mcp.ClientOptions) {
	note := func(name string) {
		j.lock.Lock()
		defer j.lock.Unlock()
		j.notes = append(j.notes, name)
	}
	options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		j.lock.Lock()
		defer j.lock.Unlock()
		j.asked = append(j.asked, r.Params.Message)
		if j.declines {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		return &mcp.ElicitResult{Action: "accept", Content: answers[r.Params.Message]}, nil
	}
	options.CreateMessageHandler = func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		said := "no text"
		if content, ok := r.Params.Messages[0].Content.(*mcp.TextContent); ok {
			said = content.Text + "!"
		}
		return &mcp.CreateMessageResult{Role: "assistant", Model: "judge",
			Content: &mcp.TextContent{Text: said}}, nil
	}
	options.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		note("updated " + r.Params.URI)
	}
	options.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) {
		note("resources")
	}
	options.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) {
		note("prompts")
	}
}

// noted returns how many notes of a kind there are.
func (j *judgeClient) noted(name string) int {
	return j.count(func() int {
		found := 0
		for _, note := range j.notes {
			if note == name {
				found++
			}
		}
		return found
	})()
}

func (j *judgeClient) read(ctx context.Context, uri string) ([]*mcp.ResourceContents, error) {
	result, err := j.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	return result.Contents, nil
}

func (j *judgeClient) listResources(ctx context.Context) error {
	found := map[string][]any{}
	for resource, err := range j.session.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		found[resource.Name] = []any{resource.URI, resource.MIMEType}
	}
	return equal([]any{found["static-text"], len(found) > 4},
		[]any{[]any{updatedURI, "text/plain"}, true}, "the list")
}

func (j *judgeClient) listTemplates(ctx context.Context) error {
	names := map[string]bool{}
	for template, err := range j.session.ResourceTemplates(ctx, nil) {
		if err != nil {
			return err
		}
		names[template.Name] = true
	}
	return equal(names, map[string]bool{"files": true, "template": true}, "the list")
}

func (j *judgeClient) readBoth(ctx context.Context) error {
	text, err := j.read(ctx, updatedURI)
	if err != nil {
		return err
	}
	blob, err := j.read(ctx, "test://static-binary")
	if err != nil {
		return err
	}
	return equal([]string{text[0].Text, blob[0].MIMEType, string(blob[0].Blob)},
		[]string{"This is the content of the static text resource.", "image/png", "\x89PNG\x00"}, "what they hold")
}

func (j *judgeClient) readMany(ctx context.Context) error {
	parts, err := j.read(ctx, "test://many")
	if err != nil {
		return err
	}
	var all []string
	for _, part := range parts {
		all = append(all, part.Text+string(part.Blob))
	}
	return equal(all, []string{"a", "b", "c"}, "the parts")
}

func (j *judgeClient) readByTemplate(ctx context.Context) error {
	parts, err := j.read(ctx, "test://template/%C3%A9%2F7/data")
	if err != nil {
		return err
	}
	var inside struct{ ID string }
	if err := json.Unmarshal([]byte(parts[0].Text), &inside); err != nil {
		return err
	}
	return equal(inside.ID, "é/7", "the variable")
}

func (j *judgeClient) readNowhere(ctx context.Context) error {
	code := int64(-32002)
	if j.isModern() {
		code = -32602
	}
	_, err := j.read(ctx, "test://nowhere")
	return refused(err, code, given{"uri": "test://nowhere"})
}

func (j *judgeClient) listPrompts(ctx context.Context) error {
	found := map[string][]*mcp.PromptArgument{}
	for prompt, err := range j.session.Prompts(ctx, nil) {
		if err != nil {
			return err
		}
		found[prompt.Name] = prompt.Arguments
	}
	return equal(found["arguments"], []given{{"name": "arg1", "required": true}, {"name": "arg2"}}, "the arguments")
}

func (j *judgeClient) prompt(ctx context.Context, name string, arguments map[string]string) ([]*mcp.PromptMessage, error) {
	result, err := j.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, err
	}
	return result.Messages, nil
}

func (j *judgeClient) promptWithArguments(ctx context.Context) error {
	messages, err := j.prompt(ctx, "arguments", map[string]string{"arg1": "x", "arg2": "y"})
	if err != nil {
		return err
	}
	return equal(messages, []given{{"role": "user", "content": given{"type": "text",
		"text": "Prompt with arguments: arg1='x', arg2='y'"}}}, "the messages")
}

func (j *judgeClient) promptOfBlocks(ctx context.Context) error {
	messages, err := j.prompt(ctx, "blocks", nil)
	if err != nil {
		return err
	}
	image := given{"type": "image", "mimeType": "image/png", "data": "cG5n"}
	resource := given{"type": "resource", "resource": given{
		"uri": "test://example", "mimeType": "text/plain", "text": "Embedded."}}
	return equal(messages, []given{{"role": "user", "content": resource}, {"role": "user", "content": image},
		{"role": "assistant", "content": given{"type": "text", "text": "What an image."}},
		{"role": "assistant", "content": given{"type": "text", "text": "As JSON."}}}, "the messages")
}

func (j *judgeClient) refusedPrompts(ctx context.Context) error {
	for _, name := range []string{"no-such-prompt", "arguments"} {
		_, err := j.prompt(ctx, name, nil)
		if err := refused(err, -32602, nil); err != nil {
			return err
		}
	}
	return nil
}

func (j *judgeClient) complete(ctx context.Context) error {
	ask := func(ref mcp.CompleteReference, name, value string, known map[string]string) (mcp.CompletionResultDetails, error) {
		params := &mcp.CompleteParams{Ref: &ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}}
		if known != nil {
			params.Context = &mcp.CompleteContext{Arguments: known}
		}
		result, err := j.session.Complete(ctx, params)
		if err != nil {
			return mcp.CompletionResultDetails{}, err
		}
		return result.Completion, nil
	}
	some, err := ask(mcp.CompleteReference{Type: "ref/prompt", Name: "arguments"}, "arg1", "word-14", nil)
	if err != nil {
		return err
	}
	many, err := ask(mcp.CompleteReference{Type: "ref/resource", URI: "test://template/{id}/data"}, "id", "", nil)
	if err != nil {
		return err
	}
	told, err := ask(mcp.CompleteReference{Type: "ref/prompt", Name: "blocks"}, "x", "",
		map[string]string{"language": "python"})
	if err != nil {
		return err
	}
	return equal([]any{len(some.Values), len(many.Values), many.Total, many.HasMore, told.Values},
		[]any{11, 100, 150, true, []string{"completion/complete", "blocks", "python"}}, "the suggestions")
}

// resourceChanges subscribes. In the modern era the SDK's answer comes with the end of
// the subscription, so only a change shows whether the subscription has begun.
func (j *judgeClient) resourceChanges(ctx context.Context) error {
	subscribe := func() error { return j.session.Subscribe(ctx, &mcp.SubscribeParams{URI: updatedURI}) }
	if j.isModern() {
		go subscribe()
	} else if err := subscribe(); err != nil {
		return err
	}
	for range 50 {
		if err := j.expect(ctx, "update", nil, "updated"); err != nil {
			return err
		}
		if j.noted("updated "+updatedURI) > 0 || !j.isModern() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := until(ctx, func() bool { return j.noted("updated "+updatedURI) > 0 }, "the notification"); err != nil {
		return err
	}
	return j.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: updatedURI})
}

// listsChange: in the modern era the client subscribes because it has handlers.
func (j *judgeClient) listsChange(ctx context.Context) error {
	resources, prompts := j.noted("resources"), j.noted("prompts")
	if err := j.expect(ctx, "toggle_items", nil, "changed"); err != nil {
		return err
	}
	return until(ctx, func() bool {
		return j.noted("resources") > resources && j.noted("prompts") > prompts
	}, "both notifications")
}

// ask calls a tool that asks; it returns what the tool reported of the answer, and the
// questions.
func (j *judgeClient) ask(ctx context.Context, tool string) (string, []string, error) {
	j.lock.Lock()
	j.asked = nil
	j.lock.Unlock()
	result, err := j.call(ctx, tool, nil)
	if err != nil {
		return "", nil, err
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	return textOf(result), j.asked, nil
}

func (j *judgeClient) askFor(tool string, want any) func(context.Context) error {
	return func(ctx context.Context) error {
		text, _, err := j.ask(ctx, tool)
		if err != nil {
			return err
		}
		var said any
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return err
		}
		return equal(said, want, "what the tool was told")
	}
}

func (j *judgeClient) decline(ctx context.Context) error {
	set := func(declines bool) {
		j.lock.Lock()
		defer j.lock.Unlock()
		j.declines = declines
	}
	set(true)
	defer set(false)
	return j.askFor("ask_name", given{"action": "decline"})(ctx)
}

func (j *judgeClient) askTwo(ctx context.Context) error {
	text, asked, err := j.ask(ctx, "ask_both")
	if err != nil {
		return err
	}
	return equal([]int{len(asked), strings.Count(text, `"accept"`)}, []int{2, 2}, "questions and answers")
}

func (j *judgeClient) askThree(ctx context.Context) error {
	text, asked, err := j.ask(ctx, "ask_rounds")
	if err != nil {
		return err
	}
	return equal([]any{text, len(asked)}, []any{"asked 3 times", 3}, "the rounds")
}

func (j *judgeClient) askForItems(ctx context.Context) error {
	const want = `{"action":"accept","content":{"context":"here"}}`
	messages, err := j.prompt(ctx, "ask", nil)
	if err != nil {
		return err
	}
	parts, err := j.read(ctx, "test://ask")
	if err != nil {
		return err
	}
	return equal([]any{messages[0].Content, parts[0].Text}, []any{given{"type": "text", "text": want}, want}, "the items")
}

func (j *judgeClient) itemCells() []cell {
	return []cell{
		{"resources/list", true, j.listResources},
		{"resources/templates/list", true, j.listTemplates},
		{"resources/read: text and blob", true, j.readBoth},
		{"resources/read: several contents", true, j.readMany},
		{"resources/read: by a template", true, j.readByTemplate},
		{"resources/read: not found", true, j.readNowhere},
		{"prompts/list", true, j.listPrompts},
		{"prompts/get: arguments", true, j.promptWithArguments},
		{"prompts/get: image and resource", true, j.promptOfBlocks},
		{"prompts/get: unknown, and an argument is missing", true, j.refusedPrompts},
		{"completion/complete", true, j.complete},
		{"a resource changes", true, j.resourceChanges},
		{"list_changed: resources and prompts", true, j.listsChange},
		{"elicitation: form", true, j.askFor("ask_name", given{"action": "accept", "content": given{"name": "Ada"}})},
		{"elicitation: declined", true, j.decline},
		{"elicitation: two at once", true, j.askTwo},
		{"elicitation: three in turn", true, j.askThree},
		{"elicitation: for a prompt and a resource", true, j.askForItems},
		{"sampling", true, j.askFor("ask_model", given{"role": "assistant", "model": "judge",
			"content": given{"type": "text", "text": "Say something.!"}})},
		{"roots", true, j.askFor("ask_roots", given{"roots": []given{{"uri": "file:///judged", "name": "judged"}}})},
	}
}
