package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/form"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Who answers the questions of a server: the flags --on-elicit and --on-sample, else
// a person at the terminal. What nobody can answer is declined, and stderr says so.

// answerQuestions gives the client what it answers questions with.
func (a *app) answerQuestions(c *mcp.Client) error {
	var one sync.Mutex // a person answers one question after the other
	answer, err := a.elicitation()
	if err != nil {
		return err
	}
	c.OnElicit = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		one.Lock()
		defer one.Unlock()
		return answer(ctx, r)
	}
	if c.OnSample, err = a.sampled(); err != nil {
		return err
	}
	if len(a.Root) > 0 {
		roots, err := rootsOf(a.Root)
		if err != nil {
			return err
		}
		c.Roots = func(context.Context) ([]mcp.Root, error) { return roots, nil }
	}
	c.LogLevel = a.logLevel()
	// Up to 2025-11-25 the log of a server need not belong to a call.
	c.OnEvent = func(_ *mcp.Session, e mcp.Event) {
		if e.Log != nil {
			a.talk.Log(*e.Log)
		}
	}
	return nil
}

type elicitFunc func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// elicitation chooses who answers.
func (a *app) elicitation() (elicitFunc, error) {
	file, isFile := strings.CutPrefix(a.OnElicit, "@")
	switch {
	case a.OnElicit == "decline" || a.OnElicit == "cancel":
		return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: a.OnElicit}, nil
		}, nil
	case isFile:
		return a.fileAnswers(file)
	case a.OnElicit != "":
		return nil, usagef("--on-elicit %q is none of decline, cancel and @FILE", a.OnElicit)
	case a.tty.in && a.tty.err:
		return a.askPerson, nil
	}
	return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		a.talk.Note("declined the question %q, as nobody can be asked without a terminal; --on-elicit @answers.json answers it", oneLine(r.Message))
		return &mcp.ElicitResult{Action: "decline"}, nil
	}, nil
}

// fileAnswers answers from a file: an object of values for every question, or a list
// whose elements answer one question each, in order. An element is an object of
// values, or "accept", "decline" or "cancel".
func (a *app) fileAnswers(path string) (elicitFunc, error) {
	data, err := arguments.ReadFile(path)
	if err != nil {
		return nil, usagef("--on-elicit: %w", err)
	}
	data = []byte(strings.TrimSpace(string(data)))
	if err := jsonx.Valid(data, 0); err != nil {
		return nil, usagef("--on-elicit: %s is not JSON: %v", path, err)
	}
	var answers []json.RawMessage
	switch jsonx.KindOf(data) {
	case '{':
		return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return a.givenAnswer(r, data, path), nil
		}, nil
	case '[':
		for v := range jsonx.Elements(data) {
			answers = append(answers, v)
		}
	default:
		return nil, usagef("--on-elicit: %s is neither an object nor a list of answers", path)
	}
	used := 0
	return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if used >= len(answers) {
			a.talk.Note("declined the question %q: %s has %d answers, and all are used", oneLine(r.Message), path, len(answers))
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		used++
		return a.givenAnswer(r, answers[used-1], path), nil
	}, nil
}

// givenAnswer answers a question with what a file says. Values that the form does
// not ask for are left out.
func (a *app) givenAnswer(r *mcp.ElicitRequest, raw json.RawMessage, path string) *mcp.ElicitResult {
	declined := func(why string) *mcp.ElicitResult {
		a.talk.Note("declined the question %q: %s", oneLine(r.Message), why)
		return &mcp.ElicitResult{Action: "decline"}
	}
	if action, err := jsonx.Unquote(raw); err == nil {
		switch {
		case action == "decline" || action == "cancel" || action == "accept" && r.URL != "":
			return &mcp.ElicitResult{Action: action}
		case action == "accept":
			raw = json.RawMessage(`{}`)
		}
	}
	if jsonx.KindOf(raw) != '{' {
		return declined(fmt.Sprintf("%s has no object of values, nor accept, decline or cancel, for it", path))
	}
	if r.URL != "" {
		return declined(`it is about a page to visit, which takes "accept" in a list of answers`)
	}
	fields, err := schema.FormOf(r.Schema)
	if err != nil {
		return declined("its form cannot be read: " + err.Error())
	}
	values := fields.Defaults()
	for i := range fields.Fields {
		if v, ok := jsonx.Lookup(raw, fields.Fields[i].Name); ok {
			values[fields.Fields[i].Name] = v
		}
	}
	if err := fields.Check(values); err != nil {
		return declined(fmt.Sprintf("the values of %s do not fit: %v", path, err))
	}
	return form.Accept(values)
}

// askPerson asks at the terminal.
func (a *app) askPerson(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	a.talk.Hold()
	defer a.talk.Release()
	d := &terminal.Dialog{Keys: a.keyboard(), Say: a.talk.Say, Paint: a.talk.Paint, Width: a.tty.errWidth, Server: a.serverName()}
	return d.Ask(ctx, r)
}

// sampled is what answers sampling requests; nil: nothing does.
func (a *app) sampled() (func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error), error) {
	if a.OnSample == "" {
		return nil, nil
	}
	res, err := sampleAnswer(a.OnSample)
	if err != nil {
		return nil, err
	}
	return func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return res, nil }, nil
}

// sampleAnswer reads the answer to sampling requests: a result of the protocol if the
// file is a JSON object with content, else its text.
func sampleAnswer(flag string) (*mcp.SampleResult, error) {
	path, ok := strings.CutPrefix(flag, "@")
	if !ok {
		return nil, usagef("--on-sample takes @FILE, got %q", flag)
	}
	data, err := arguments.ReadFile(path)
	if err != nil {
		return nil, usagef("--on-sample: %w", err)
	}
	if !utf8.Valid(data) {
		return nil, usagef("--on-sample: %s is not text in UTF-8", path)
	}
	res := &mcp.SampleResult{Role: "assistant", Model: "file", StopReason: "endTurn"}
	trimmed := []byte(strings.TrimSpace(string(data)))
	content, ok := json.RawMessage(nil), false
	if jsonx.Valid(trimmed, 0) == nil && jsonx.KindOf(trimmed) == '{' {
		content, ok = jsonx.Lookup(trimmed, "content")
	}
	if !ok {
		res.Content = []mcp.Content{mcp.Text(strings.TrimSuffix(string(data), "\n"))}
		return res, nil
	}
	var w struct {
		Role       string `json:"role"`
		Model      string `json:"model"`
		StopReason string `json:"stopReason"`
	}
	if err := jsonx.Unmarshal(trimmed, &w); err != nil {
		return nil, usagef("--on-sample: %s: %v", path, err)
	}
	if w.Role != "" {
		res.Role = w.Role
	}
	if w.Model != "" {
		res.Model = w.Model
	}
	res.StopReason = w.StopReason
	blocks := []json.RawMessage{content}
	if jsonx.KindOf(content) == '[' {
		blocks = nil
		for b := range jsonx.Elements(content) {
			blocks = append(blocks, b)
		}
	}
	for _, b := range blocks {
		if jsonx.KindOf(b) != '{' {
			return nil, usagef("--on-sample: %s: content is neither a block nor a list of blocks", path)
		}
		res.Content = append(res.Content, mcp.RawContent(b))
	}
	return res, nil
}

// rootsOf makes roots of folders.
func rootsOf(dirs []string) ([]mcp.Root, error) {
	var out []mcp.Root
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, usagef("--root %s is no folder", dir)
		}
		slashed := filepath.ToSlash(path)
		if runtime.GOOS == "windows" {
			slashed = "/" + slashed
		}
		u := url.URL{Scheme: "file", Path: slashed}
		out = append(out, mcp.Root{URI: u.String(), Name: filepath.Base(path)})
	}
	return out, nil
}
