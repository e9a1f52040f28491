package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The beginnings of files.
var (
	png  = []byte("\x89PNG\r\n\x1a\n and so on")
	jpeg = []byte("\xff\xd8\xff\xe0 and so on")
	wav  = []byte("RIFF\x24\x00\x00\x00WAVEfmt and so on")
	pdf  = []byte("%PDF-1.7 and so on")

	// report is a PDF of one page that says "A report."
	report = "%PDF-1.7 1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R/Resources<</Font<</F<</Subtype/Type1>>>>>>>>endobj " +
		"4 0 obj<<>>stream\nBT /F 9 Tf (A report.) Tj ET\nendstream endobj"
)

// resultOf returns a result as the model receives it.
func resultOf(t testing.TB, info model.Info, res *mcp.ToolResult) []model.Part {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1"}
	srv.HandleTool(mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return res, nil })
	m := &talker{info: info, answers: []answer{want("s_t"), say("done")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("s", srv))
	if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	parts := m.request(t, 1).Messages[2].Parts
	if len(parts) != 1 || parts[0].Result == nil {
		t.Fatalf("parts %+v, want one result", parts)
	}
	return parts[0].Result.Parts
}

// shown writes parts as one text.
func shown(parts []model.Part) string {
	var all []string
	for _, p := range parts {
		if p.Media != nil {
			all = append(all, fmt.Sprintf("<%s %d %s>", p.Media.MIME, len(p.Media.Data), p.Media.Name))
		} else {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "|")
}

// Every kind of content reaches the model in a form that it accepts.
func TestResultsOfEveryKind(t *testing.T) {
	all := model.Info{Images: true, Audio: true, Files: true}
	image := mcp.ImageContent{Data: png, MIMEType: "image/png"}
	for _, tt := range []struct {
		name string
		info model.Info
		res  mcp.ToolResult
		want string
	}{
		{"text", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("a"), mcp.Text("b")}}, "a\nb"},
		{"text with what is none", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("a\x00b")}}, "a\uFFFDb"},
		{"an image", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("see:"), image, mcp.Text("there")}}, "see:|<image/png 18 >|there"},
		{"an image of another type", all, mcp.ToolResult{Content: []mcp.Content{mcp.ImageContent{Data: jpeg, MIMEType: "image/png"}}}, "<image/jpeg 14 >"},
		{"an image of an odd type", all, mcp.ToolResult{Content: []mcp.Content{mcp.ImageContent{Data: []byte("II*\x00"), MIMEType: "image/tiff"}}}, `[an image of type "image/tiff", 4 bytes, cannot be shown to this model]`},
		{"an image for the blind", model.Info{}, mcp.ToolResult{Content: []mcp.Content{image}}, `[an image of type "image/png", 18 bytes, cannot be shown to this model]`},
		{"an empty image", all, mcp.ToolResult{Content: []mcp.Content{mcp.ImageContent{MIMEType: "image/png"}}}, `…is empty]`},
		{"a large image", all, mcp.ToolResult{Content: []mcp.Content{mcp.ImageContent{Data: append(png, make([]byte, 4<<20)...), MIMEType: "image/png"}}}, `…is too large to be shown to this model]`},
		{"a sound", all, mcp.ToolResult{Content: []mcp.Content{mcp.AudioContent{Data: wav, MIMEType: "audio/x-wav"}}}, "<audio/wav 25 >"},
		{"a sound for the deaf", model.Info{Images: true}, mcp.ToolResult{Content: []mcp.Content{mcp.AudioContent{Data: wav, MIMEType: "audio/wav"}}}, "[a sound of type…"},
		{"a text resource", all, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "text/plain", Text: "hello"}}}}, "[resource \"app:x\" (text/plain)]\nhello"},
		{"a blob that is text", all, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "application/json", Blob: []byte(`{"a":1}`)}}}}, "[resource \"app:x\" (application/json)]\n{\"a\":1}"},
		{"a blob that is not the text that it says", all, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "text/plain", Blob: []byte("\xff\xfe")}}}}, `…2 bytes, cannot be shown to this model]`},
		{"a file", all, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "application/pdf", Blob: pdf}}}}, "[resource \"app:x\" (application/pdf)]|<application/pdf 18 app:x>"},
		{"a file as text", model.Info{}, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "application/pdf", Blob: []byte(report)}}}},
			"[resource \"app:x\" (application/pdf)]\n[text of the PDF \"app:x\"]\n[page 1 of 1]\nA report.\n"},
		{"a damaged file as text", model.Info{}, mcp.ToolResult{Content: []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "app:x", MIMEType: "application/pdf", Blob: pdf}}}},
			"…cannot be shown to this model, and its text cannot be read: it is damaged]"},
		{"a link", all, mcp.ToolResult{Content: []mcp.Content{mcp.ResourceLink{Resource: mcp.Resource{URI: "app:x", Name: "ex", MIMEType: "text/plain", Size: 12, Description: "an\nexample"}}}},
			`[link to resource "app:x" (text/plain), "ex", 12 bytes: an example; read_resource with server "s" reads it]`},
		{"structured alone", all, mcp.ToolResult{Structured: json.RawMessage(`{"a":1}`)}, `{"a":1}`},
		{"structured and its copy", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("{ \"b\": 2,\n \"a\": 1 }")}, Structured: json.RawMessage(`{"a":1,"b":2}`)}, "{ \"b\": 2,\n \"a\": 1 }"},
		{"structured and its only value", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("[ 1 ]")}, Structured: json.RawMessage(`{"result":[1]}`)}, "[ 1 ]"},
		{"structured and its only word", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("hi")}, Structured: json.RawMessage(`{"result":"hi"}`)}, "hi"},
		{"structured and its only word of another name", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("a\nb\n")}, Structured: json.RawMessage(`{"content":"a\nb\n"}`)}, "a\nb\n"},
		{"structured and its only value in words", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text(`{"a": 1}`)}, Structured: json.RawMessage(`{"content":"{\"a\": 1}"}`)}, `{"a": 1}`},
		{"structured and a list in blocks", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("a"), mcp.Text(`{"b": 1}`)}, Structured: json.RawMessage(`{"result":["a",{"b":1}]}`)}, "a\n{\"b\": 1}"},
		{"structured and half of a list in blocks", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("a")}, Structured: json.RawMessage(`{"result":["a","b"]}`)}, "a\n{\"result\":[\"a\",\"b\"]}"},
		{"structured and an empty list", all, mcp.ToolResult{Structured: json.RawMessage(`{"result":[]}`)}, `{"result":[]}`},
		{"structured and an image", all, mcp.ToolResult{Content: []mcp.Content{image}, Structured: (&mcp.ToolResult{Content: []mcp.Content{image}}).JSON()}, "<image/png 18 >"},
		{"structured and a long text beside", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text(strings.Repeat("x", 300))}, Structured: json.RawMessage(`{"text":"` + strings.Repeat("x", 300) + `","lines":1}`)}, strings.Repeat("x", 300) + "\n{\"lines\":1}"},
		{"structured and another text", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("done")}, Structured: json.RawMessage(`{"content":"ab"}`)}, "done\n{\"content\":\"ab\"}"},
		{"structured and another value", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("1")}, Structured: json.RawMessage(`{"result":1,"more":2}`)}, "1\n{\"result\":1,\"more\":2}"},
		{"structured and words", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text("one")}, Structured: json.RawMessage(`{"a":1}`)}, "one\n{\"a\":1}"},
		{"an unknown kind", all, mcp.ToolResult{Content: []mcp.Content{mcp.RawContent(`{"type":"smell","of":"roses"}`)}}, `{"type":"smell","of":"roses"}`},
		{"nothing", all, mcp.ToolResult{}, "[The tool has run and returned nothing.]"},
		{"blanks", all, mcp.ToolResult{Content: []mcp.Content{mcp.Text(" \n")}}, "…returned nothing.]"},
		{"a failure without words", all, mcp.ToolResult{IsError: true}, "[The tool failed and did not say why.]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := shown(resultOf(t, tt.info, &tt.res))
			end, isEnd := strings.CutPrefix(tt.want, "…")
			beginning, isBeginning := strings.CutSuffix(tt.want, "…")
			if got != tt.want && !(isEnd && strings.HasSuffix(got, end)) && !(isBeginning && strings.HasPrefix(got, beginning)) {
				t.Errorf("the model is given %q, want %q", got, tt.want)
			}
		})
	}
}

func TestManyMediaAreBounded(t *testing.T) {
	res := &mcp.ToolResult{}
	for range 30 {
		res.Content = append(res.Content, mcp.ImageContent{Data: png, MIMEType: "image/png"})
	}
	media := 0
	parts := resultOf(t, model.Info{Images: true}, res)
	for _, p := range parts {
		if p.Media != nil {
			media++
		}
	}
	if media != 20 || !strings.Contains(parts[len(parts)-1].Text, "too large") {
		t.Errorf("%d pictures, and then %.200q", media, parts[len(parts)-1].Text)
	}
}

// A long result is cut after a line and can be read to its end: the pieces form the whole.
func TestLongResultsAreReadOn(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d über alles\n", i)
	}
	long := b.String()
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return long, nil })
	var got strings.Builder
	n := 0
	m := &talker{}
	m.answers = []answer{want("s_t"), func(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
		text := lastText(req)
		if len(text) > 33<<10 {
			t.Errorf("%d bytes at once", len(text))
		}
		at := strings.LastIndex(text, "\n[")
		got.WriteString(text[:at])
		note := text[at+1:]
		n++
		var id string
		var from, to, size, offset int
		if _, err := fmt.Sscanf(note, "[cut: this was bytes %d to %d of %d; read_more with id %q and offset %d", &from, &to, &size, &id, &offset); err == nil {
			return want(fmt.Sprintf(`read_more {"id":%q,"offset":%d}`, id, offset))(ctx, req, emit)
		}
		if _, err := fmt.Sscanf(note, "[bytes %d to %d of %d of result of s_t; offset %d goes on]", &from, &to, &size, &offset); err == nil {
			return want(fmt.Sprintf(`read_more {"id":"t1","offset":%d}`, offset))(ctx, req, emit)
		}
		if !strings.HasSuffix(note, "that was the end]") {
			t.Errorf("the piece ends with %q", note)
		}
		return say("read")(ctx, req, emit)
	}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("s", srv))
	if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(got.String(), "\n", "") != strings.ReplaceAll(long, "\n", "") {
		t.Errorf("%d bytes in %d pieces are not the %d bytes of the result", got.Len(), n, len(long))
	}
}

func TestReadMoreOfNothing(t *testing.T) {
	m := &talker{answers: []answer{want(`read_more {"id":"t1"}`), want(`read_more {"id":"t1","offset":-1}`), say("ok")}}
	h := newHost(t, &host.Host{Model: m}, inMemory("clock", clock()))
	if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if got := lastText(m.request(t, 1)); !strings.Contains(got, `unknown text "t1"`) {
		t.Errorf("the model is told %q", got)
	}
}

// The texts for read_more are bounded: old ones make room, and the model is told so.
func TestLongResultsAreKeptInBounds(t *testing.T) {
	big := strings.Repeat("0123456789abcde\n", 7<<20/16)
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return big, nil })
	m := &talker{answers: []answer{want("s_t"), want("s_t"), want("s_t"), want(`read_more {"id":"t1","offset":5}`), want(`read_more {"id":"t3","offset":5}`), say("ok")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{Repeats: 9}}, inMemory("s", srv))
	if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if got := lastText(m.request(t, 4)); !strings.Contains(got, `"t1" was dropped`) {
		t.Errorf("the oldest says %.100q", got)
	}
	if got := lastText(m.request(t, 5)); !strings.HasPrefix(got, "56789") {
		t.Errorf("the newest says %.100q", got)
	}
}

func library() *mcp.Server {
	s := &mcp.Server{Name: "library", Version: "1"}
	mcp.AddResource(s, mcp.Resource{URI: "app:notes", Name: "notes", Title: "My notes"}, func(context.Context) (string, error) { return "buy milk", nil })
	mcp.AddResource(s, mcp.Resource{URI: "app:empty", Name: "empty"}, func(context.Context) (string, error) { return "", nil })
	mcp.AddResource(s, mcp.Resource{URI: "app:picture", Name: "picture", MIMEType: "image/png"}, func(context.Context) ([]byte, error) { return png, nil })
	mcp.AddResource(s, mcp.Resource{URI: "app:what?", Name: "odd"}, func(context.Context) (string, error) { return "odd", nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "app:day/{day}/{part}", Name: "a day", Complete: map[string]mcp.CompleteFunc{
		"day": func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
			return []string{prefix + "day", "a b"}, nil
		},
		"part": func(_ context.Context, prefix string, others map[string]string) ([]string, error) {
			return []string{others["day"] + "!"}, nil
		},
	}}, func(_ context.Context, in struct {
		Day  string `json:"day"`
		Part string `json:"part"`
	}) (string, error) {
		return in.Part + " of " + in.Day, nil
	})
	return s
}

// Reading for the model is approved as a tool of the server that only reads.
func TestReadResource(t *testing.T) {
	answers := []answer{want(`read_resource {"server":"lib","uri":"app:notes"}`), want(`read_resource {"server":"lib","uri":"app:none"}`), want(`read_resource {"server":"nobody","uri":"x"}`), say("ok")}
	for _, tt := range []struct {
		name string
		host *host.Host
		want string
	}{
		{"a rule", &host.Host{Allow: []string{"lib/resources/read"}}, "[resource \"app:notes\" (text/plain)]\nbuy milk"},
		{"the person", &host.Host{Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			if a.Server != "lib" || a.Tool.Name != "resources/read" || !strings.Contains(string(a.Arguments), `"uri":"app:`) || !a.ReadOnly {
				t.Errorf("the person is asked about %+v", a)
			}
			return host.Verdict{Answer: host.AllowConversation}, nil
		}}}, "[resource \"app:notes\" (text/plain)]\nbuy milk"},
		{"nobody", &host.Host{}, "not called"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &talker{answers: answers}
			tt.host.Model = m
			h := newHost(t, tt.host, inMemory("lib", library()))
			if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			if got := toolsIn(m.request(t, 0)); got != "read_resource" {
				t.Errorf("tools %s", got)
			}
			if got := lastText(m.request(t, 1)); !strings.Contains(got, tt.want) {
				t.Errorf("it reads %q, want %q", got, tt.want)
			}
			if got := lastText(m.request(t, 3)); !strings.Contains(got, `no server "nobody"`) {
				t.Errorf("a server that is not there: %q", got)
			}
		})
	}
	t.Run("a trusted server", func(t *testing.T) {
		m := &talker{answers: answers}
		srv := inMemory("lib", library())
		srv.Trusted = true
		h := newHost(t, &host.Host{Model: m}, srv)
		if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if got := lastText(m.request(t, 1)); !strings.Contains(got, "buy milk") {
			t.Errorf("it reads %q", got)
		}
		if got := lastText(m.request(t, 2)); !strings.Contains(got, "app:none") {
			t.Errorf("a resource that is not there: %q", got)
		}
	})
}
