package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bytes travel in base64: images (PROM-26-005), sounds (PROM-26-006) and resources
// (RES-26-016). All say what they are, by a MIME type found where none was given, and an
// embedded resource has a URI and its text or blob (PROM-26-007).
func TestContentOnTheWire(t *testing.T) {
	png := []byte("\x89PNG\x0D\x0A\x1A\x0A\xff\xfe")
	wav := []byte("RIFF\xff\xff\xff\xffWAVE")
	tests := []struct {
		content mcp.Content
		want    string
	}{
		{mcp.ImageContent{Data: png, MIMEType: "image/x-own"}, `{"type":"image","data":"iVBORw0KGgr//g==","mimeType":"image/x-own"}`},
		{mcp.ImageContent{Data: png}, `{"type":"image","data":"iVBORw0KGgr//g==","mimeType":"image/png"}`},
		{mcp.AudioContent{Data: wav, MIMEType: "audio/x-own"}, `{"type":"audio","data":"UklGRv////9XQVZF","mimeType":"audio/x-own"}`},
		{mcp.AudioContent{Data: wav}, `{"type":"audio","data":"UklGRv////9XQVZF","mimeType":"audio/wave"}`},
		{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "a:b", MIMEType: "text/x", Text: "t"}}, `{"type":"resource","resource":{"uri":"a:b","mimeType":"text/x","text":"t"}}`},
		{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "a:b"}}, `{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":""}}`},
		{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "a:b", Blob: []byte{255}}}, `{"type":"resource","resource":{"uri":"a:b","mimeType":"application/octet-stream","blob":"/w=="}}`},
	}
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddPrompt(s, mcp.Prompt{Name: "all"}, func(context.Context, struct{}) ([]mcp.PromptMessage, error) {
		var out []mcp.PromptMessage
		for _, tt := range tests {
			out = append(out, mcp.PromptMessage{Role: "user", Content: tt.content})
		}
		return out, nil
	})
	mcp.AddResource(s, mcp.Resource{URI: "a:bytes", Name: "bytes"}, func(context.Context) ([]byte, error) { return []byte{0, 255, 254}, nil })
	p := rawClient(t, s)
	p.send(modern(1, "prompts/get", `{}`, `"name":"all"`))
	m := p.answer(1)
	var got struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(m.Result, &got); err != nil || len(got.Messages) != len(tests) {
		t.Fatalf("%s: %v", show(&m), err)
	}
	for i, tt := range tests {
		if d := cmp.Diff(tt.want, string(got.Messages[i].Content)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.content, d)
		}
	}
	p.send(modern(2, "resources/read", `{}`, `"uri":"a:bytes"`))
	m = p.answer(2)
	var read struct{ Contents []map[string]string }
	want := []map[string]string{{"uri": "a:bytes", "mimeType": "application/octet-stream", "blob": "AP/+"}}
	if err := json.Unmarshal(m.Result, &read); err != nil || !cmp.Equal(want, read.Contents) {
		t.Errorf("contents = %s, want %v", show(&m), want)
	}
}

// A resource is registered under a text that begins like a URI (RES-26-008), and read by a URI: any
// other text reaches no handler, even if it resembles a template (RES-26-014).
func TestURIsOfResources(t *testing.T) {
	text := func(context.Context) (string, error) { return "", nil }
	type variable struct {
		X string `json:"x"`
	}
	expand := func(context.Context, variable) (string, error) { return "", nil }
	panics := func(f func()) (out bool) {
		defer func() { out = recover() != nil }()
		f()
		return false
	}
	for uri, want := range map[string]bool{"a:b": true, "file:///x": true, "git+ssh://h/x": true, "x-1.y:": true,
		"": false, "x": false, "/x": false, ":x": false, "1a:b": false, "a_b:c": false, "ä:c": false, "a b:c": false, "{": false} {
		if got := !panics(func() { mcp.AddResource(&mcp.Server{}, mcp.Resource{URI: uri, Name: "n"}, text) }); got != want {
			t.Errorf("AddResource %q is taken: %v, want %v", uri, got, want)
		}
	}
	for uri, want := range map[string]bool{"a:{x}": true, "file:///{+x}": true, "{+x}": true, "{x}/": true, "{x}:b": true, "": false, "b/{x}": false, "1:{x}": false} {
		got := !panics(func() {
			mcp.AddResourceTemplate(&mcp.Server{}, mcp.ResourceTemplate{URITemplate: uri, Name: "n"}, expand)
		})
		if got != want {
			t.Errorf("AddResourceTemplate %q is taken: %v, want %v", uri, got, want)
		}
	}

	ran := 0
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "note:{x}", Name: "simple"}, func(_ context.Context, v variable) (string, error) { ran++; return v.X, nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "file:///{+x}", Name: "path"}, func(_ context.Context, v variable) (string, error) { ran++; return v.X, nil })
	p := rawClient(t, s)
	for i, uri := range []string{"", "x", "note", "note:a b", "note:a\x00b", "note:a\nb", "note:%", "note:%2", "note:%zz", "note:a\"b", "note:<a>", "note:a/b",
		"file:///a b", "file:///%zz", "file:///a\x7f", "file:///a\\b", "note:\xff", "note:ä", "file:///{x}"} {
		id := int64(i + 1)
		p.send(modern(id, "resources/read", `{}`, `"uri":`+quote(uri)))
		if m := p.answer(id); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams || ran != 0 {
			t.Errorf("read %q = %s with %d handlers run, want %d", uri, show(&m), ran, jsonrpc.CodeInvalidParams)
		}
		ran = 0
	}
	for i, uri := range []string{`null`, `7`, `{}`, `["note:a"]`} {
		id := int64(i + 100)
		p.send(modern(id, "resources/read", `{}`, `"uri":`+uri))
		wantError(t, p.answer(id), jsonrpc.CodeInvalidParams)
	}
	for i, uri := range []string{"note:a", "note:%C3%A4", "file:///a/b%20c"} {
		id := int64(i + 200)
		p.send(modern(id, "resources/read", `{}`, `"uri":`+quote(uri)))
		if m := p.answer(id); m.Error != nil {
			t.Errorf("read %q = %s", uri, show(&m))
		}
	}
}

// Every member of a completion is checked before a function of the server runs (COMP-26-008).
func TestCompletionInputs(t *testing.T) {
	ran := 0
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddPrompt(s, mcp.Prompt{Name: "p", Complete: map[string]mcp.CompleteFunc{"name": func(context.Context, string, map[string]string) ([]string, error) {
		ran++
		return nil, nil
	}}}, func(context.Context, struct {
		Name string `json:"name"`
	}) (string, error) {
		return "", nil
	})
	p := rawClient(t, s)
	const good, arg = `"ref":{"type":"ref/prompt","name":"p"}`, `"argument":{"name":"name","value":"x"}`
	for i, params := range []string{
		``, good, arg,
		`"ref":null,` + arg, `"ref":7,` + arg, `"ref":"p",` + arg, `"ref":[],` + arg, `"ref":{},` + arg,
		`"ref":{"type":"ref/tool","name":"p"},` + arg, `"ref":{"type":"ref/prompt"},` + arg, `"ref":{"type":"ref/prompt","name":7},` + arg,
		`"ref":{"type":"ref/resource","uri":"p"},` + arg, `"ref":{"type":"ref/prompt","name":"P"},` + arg,
		good + `,"argument":null`, good + `,"argument":"name"`, good + `,"argument":{"value":"x"}`, good + `,"argument":{"name":"name"}`,
		good + `,"argument":{"name":"name","value":7}`, good + `,"argument":{"name":7,"value":"x"}`, good + `,"argument":{"name":"name","value":null}`,
		good + `,` + arg + `,"context":7`, good + `,` + arg + `,"context":{"arguments":[]}`, good + `,` + arg + `,"context":{"arguments":{"a":7}}`,
	} {
		id := int64(i + 1)
		p.send(modern(id, "completion/complete", `{}`, params))
		if m := p.answer(id); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams || ran != 0 {
			t.Errorf("%s = %s, and the function ran %d times", params, show(&m), ran)
		}
		ran = 0
	}
	p.send(modern(1000, "completion/complete", `{}`, good+`,`+arg))
	if m := p.answer(1000); m.Error != nil || ran != 1 {
		t.Errorf("a good one = %s", show(&m))
	}
}

// An invalid argument of a prompt is refused before its function runs, and an invalid message after
// it (PROM-26-012).
func TestInputsAndOutputsOfPrompts(t *testing.T) {
	ran := 0
	var out []mcp.PromptMessage
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddPrompt(s, mcp.Prompt{Name: "p"}, func(context.Context, struct {
		Kind string `json:"kind" enum:"a,b"`
		Note string `json:"note,omitempty"`
	}) ([]mcp.PromptMessage, error) {
		ran++
		return out, nil
	})
	p := rawClient(t, s)
	id := int64(0)
	get := func(args string) jsonrpc.Message {
		id++
		ran = 0
		p.send(modern(id, "prompts/get", `{}`, `"name":"p","arguments":`+args))
		return p.answer(id)
	}
	for _, args := range []string{`{}`, `null`, `7`, `[]`, `"a"`, `{"kind":"c"}`, `{"kind":7}`, `{"kind":null}`, `{"Kind":"a"}`, `{"kind":"a","note":7}`, `{"kind":"a","more":"x"}`} {
		if m := get(args); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams || ran != 0 {
			t.Errorf("arguments %s = %s, and the function ran %d times", args, show(&m), ran)
		}
	}
	for _, tt := range []struct {
		out  mcp.PromptMessage
		want bool
	}{
		{mcp.User("x"), true}, {mcp.PromptMessage{Role: "assistant", Content: mcp.Text("x")}, true},
		{mcp.PromptMessage{Role: "system", Content: mcp.Text("x")}, false}, {mcp.PromptMessage{Content: mcp.Text("x")}, false}, {mcp.PromptMessage{Role: "user"}, false},
	} {
		out = []mcp.PromptMessage{tt.out}
		if m := get(`{"kind":"a"}`); (m.Error == nil) != tt.want || m.Error != nil && m.Error.Code != jsonrpc.CodeInternal || ran != 1 {
			t.Errorf("the message %+v = %s", tt.out, show(&m))
		}
	}
}
