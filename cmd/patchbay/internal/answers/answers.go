// Package answers answers the questions from servers without a person, from files and folders:
// elicitation requests with values, sampling requests with a text, and roots/list with folders.
package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/form"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// File answers elicitation requests from a JSON file. An object holds the values for every request;
// a list answers one request per element, in order. An element is an object of values, or "accept",
// "decline" or "cancel". A request that the file does not answer is declined, and note says so.
func File(path string, note func(format string, args ...any)) (func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error), error) {
	data, err := arguments.ReadFile(path)
	if err != nil {
		return nil, err
	}
	data = []byte(strings.TrimSpace(string(data)))
	if err := jsonx.Valid(data, 0); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %v", path, err)
	}
	var answers []json.RawMessage
	switch jsonx.KindOf(data) {
	case '{':
		return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return given(r, data, path, note), nil
		}, nil
	case '[':
		for v := range jsonx.Elements(data) {
			answers = append(answers, v)
		}
	default:
		return nil, fmt.Errorf("%s is neither an object nor a list of answers", path)
	}
	used := 0
	return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if used >= len(answers) {
			note("declined the question %q: all %d answers of %s are used", screen.OneLine(r.Message), len(answers), path)
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		used++
		return given(r, answers[used-1], path, note), nil
	}, nil
}

// given answers a request with the values of a file. Values that the form does not ask for are
// dropped.
func given(r *mcp.ElicitRequest, raw json.RawMessage, path string, note func(string, ...any)) *mcp.ElicitResult {
	declined := func(why string) *mcp.ElicitResult {
		note("declined the question %q: %s", screen.OneLine(r.Message), why)
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
		return declined(fmt.Sprintf("%s has neither an object of values nor accept, decline or cancel for it", path))
	}
	if r.URL != "" {
		return declined(`it asks to visit a page; answer "accept" in a list of answers`)
	}
	fields, err := schema.FormOf(r.Schema)
	if err != nil {
		return declined("invalid form: " + err.Error())
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

// Sample reads the answer to sampling requests from a file. A JSON object with content is the
// result, with defaults for its other members; the text of any other file becomes the content.
func Sample(path string) (*mcp.SampleResult, error) {
	data, err := arguments.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is not UTF-8 text", path)
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
		return nil, fmt.Errorf("%s: %v", path, err)
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
			return nil, fmt.Errorf("%s: content is neither a block nor a list of blocks", path)
		}
		res.Content = append(res.Content, mcp.RawContent(b))
	}
	return res, nil
}

// Roots returns a root for each folder.
func Roots(dirs []string) ([]mcp.Root, error) {
	var out []mcp.Root
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder", dir)
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
