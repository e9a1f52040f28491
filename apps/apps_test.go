package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

const page = "<!DOCTYPE html>\n<html><title>Forecast</title></html>\n"

const forecastURI = "ui://weather/forecast"

type place struct {
	City string `json:"city"`
}

// weather is a server with a view, a tool that it shows, a tool only for the view, a tool only
// for the model and a tool without a link.
func weather() *mcp.Server {
	srv := &mcp.Server{Name: "weather", Version: "1"}
	ui := apps.Enable(srv)
	ui.AddView(apps.View{URI: forecastURI, Name: "forecast", HTML: page, Needs: apps.Needs{
		CSP:           &apps.CSP{Connect: []string{"https://api.example.com"}, Resource: []string{"https://*.example.com:8443"}},
		Permissions:   &apps.Permissions{Geolocation: true},
		PrefersBorder: new(false),
	}})
	type forecast struct {
		Sky string `json:"sky"`
	}
	apps.AddTool(ui, mcp.Tool{Name: "forecast", Meta: mcp.Meta{"com.example/kept": json.RawMessage(`1`)}}, apps.Link{ResourceURI: forecastURI},
		func(context.Context, place) (forecast, error) { return forecast{"blue"}, nil })
	apps.AddTool(ui, mcp.Tool{Name: "refresh"}, apps.Link{ResourceURI: forecastURI, Visibility: []apps.Audience{apps.App}},
		func(context.Context, struct{}) (string, error) { return "refreshed", nil })
	apps.AddTool(ui, mcp.Tool{Name: "warn"}, apps.Link{Visibility: []apps.Audience{apps.Model}},
		func(ctx context.Context, _ struct{}) (string, error) { return fmt.Sprint(apps.CanRender(ctx)), nil })
	mcp.AddTool(srv, mcp.Tool{Name: "ping_station"}, func(context.Context, struct{}) (string, error) { return "pong", nil })
	return srv
}

// renders are the capabilities of a client that renders views.
var renders = `{"extensions":{"io.modelcontextprotocol/ui":` + string(apps.Settings()) + `}}`

// host is a client of 2026-07-28 that declares some capabilities in each request.
func host(t testing.TB, s *mcp.Server, capabilities string) func(method, params string) jsonrpc.Message {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(t.Context(), far) }()
	t.Cleanup(func() { near.Close(); <-done })
	id := 0
	return func(method, params string) jsonrpc.Message {
		t.Helper()
		id++
		if params != "" {
			params = "," + params
		}
		err := near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}%s}}`, id, method, capabilities, params))
		if err != nil {
			t.Fatal(err)
		}
		frame, err := near.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// tools lists the tools, by name, each with its _meta.
func tools(t testing.TB, m jsonrpc.Message) map[string]string {
	t.Helper()
	var res struct {
		Tools []struct {
			Name string          `json:"name"`
			Meta json.RawMessage `json:"_meta"`
		} `json:"tools"`
	}
	if m.Error != nil {
		t.Fatal(m.Error)
	}
	if err := json.Unmarshal(m.Result, &res); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, tool := range res.Tools {
		out[tool.Name] = string(tool.Meta)
	}
	return out
}

// A client that renders views sees all tools with their links, and one that does not sees neither
// links nor tools only for views (XAPP-26-032; VER-26-005). A client declares it with a list of
// MIME types (XAPP-26-031).
func TestNegotiation(t *testing.T) {
	all := map[string]string{
		"forecast":     `{"com.example/kept":1,"ui":{"resourceUri":"ui://weather/forecast"}}`,
		"refresh":      `{"ui":{"resourceUri":"ui://weather/forecast","visibility":["app"]}}`,
		"warn":         `{"ui":{"visibility":["model"]}}`,
		"ping_station": "",
	}
	plain := map[string]string{"forecast": `{"com.example/kept":1}`, "warn": "", "ping_station": ""}
	tests := []struct {
		name, capabilities string
		want               map[string]string
		refresh            bool
	}{
		{"renders", renders, all, true},
		{"renders more", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/uri-list","text/html;profile=mcp-app"],"x":1}}}`, all, true},
		{"plain", `{}`, plain, false},
		{"other extension", `{"extensions":{"com.example/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`, plain, false},
		{"other types", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`, plain, false},
		{"no types", `{"extensions":{"io.modelcontextprotocol/ui":{}}}`, plain, false},
		{"bad types", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":"text/html;profile=mcp-app"}}}`, plain, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ask := host(t, weather(), tt.capabilities)
			if diff := cmp.Diff(tt.want, tools(t, ask("tools/list", ""))); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if m := ask("tools/call", `"name":"refresh"`); (m.Error == nil) != tt.refresh {
				t.Errorf("a call of the tool for views: %s, want success %v", m.Result, tt.refresh)
			} else if m.Error != nil && m.Error.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("error %v, want code %d", m.Error, jsonrpc.CodeInvalidParams)
			}
			if m := ask("tools/call", `"name":"warn"`); !strings.Contains(string(m.Result), fmt.Sprintf(`"text":"%v"`, tt.refresh)) {
				t.Errorf("CanRender in a tool: %s, want %v", m.Result, tt.refresh)
			}
		})
	}
}

// A session declares what it renders when it opens, or in each request; the answer is
// the same on every wire. Before 2025-06-18 tools have no _meta to name a view in.
func TestNegotiationOfSessions(t *testing.T) {
	client := func() *mcp.Client {
		return &mcp.Client{Name: "c", Extensions: map[string]json.RawMessage{apps.Extension: apps.Settings()}}
	}
	mcptest.Every(t, weather, client, func(t *testing.T, s *mcp.Session) {
		links := map[string]apps.Link{}
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if links[tool.Name], err = apps.LinkOf(tool); err != nil {
				t.Error(err)
			}
		}
		want := map[string]apps.Link{"forecast": {}, "warn": {}, "ping_station": {}}
		if s.Revision() >= mcp.V2025_06_18 {
			want["forecast"] = apps.Link{ResourceURI: forecastURI}
			want["refresh"] = apps.Link{ResourceURI: forecastURI, Visibility: []apps.Audience{apps.App}}
			want["warn"] = apps.Link{Visibility: []apps.Audience{apps.Model}}
		}
		if diff := cmp.Diff(want, links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
	})
}

// On every revision and wire a client that renders nothing gets a text for the tool with a
// view (XAPP-26-033), and can read the view, which is exactly of the type of the extension and
// has text (XAPP-26-003). The declaration reaches it too.
func TestEveryClientCanUseTheTools(t *testing.T) {
	mcptest.Every(t, weather, func() *mcp.Client { return &mcp.Client{Name: "c"} }, func(t *testing.T, s *mcp.Session) {
		if !s.Server().Capabilities.Has("extensions", apps.Extension) {
			t.Errorf("capabilities = %s", s.Server().Capabilities)
		}
		res, err := s.CallTool(t.Context(), "forecast", place{"Oslo"})
		if err != nil || res.Text() != `{"sky":"blue"}` {
			t.Errorf("forecast = %+v, %v, want its text", res, err)
		}
		view, err := s.ReadResource(t.Context(), forecastURI)
		if err != nil {
			t.Fatal(err)
		}
		if c := view.Contents[0]; c.MIMEType != "text/html;profile=mcp-app" || c.Text != page || c.Blob != nil || c.URI != forecastURI {
			t.Errorf("view = %+v", c)
		}
	})
}

// A view declares its needs where it is listed and where it is read (XAPP-26-002).
func TestViewMeta(t *testing.T) {
	s := mcptest.Connect(t, weather(), &mcp.Client{Name: "c"}, mcp.V2025_11_25)
	want := `{"csp":{"connectDomains":["https://api.example.com"],"resourceDomains":["https://*.example.com:8443"]},"permissions":{"geolocation":{}},"prefersBorder":false}`
	for r, err := range s.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.MIMEType != apps.MIMEType || string(r.Meta["ui"]) != want {
			t.Errorf("listed as %s %s, want %s", r.MIMEType, r.Meta["ui"], want)
		}
	}
	res, err := s.ReadResource(t.Context(), forecastURI)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.Contents[0].Meta["ui"]); got != want {
		t.Errorf("read as %s, want %s", got, want)
	}
	needs, err := apps.NeedsOf(res.Contents[0])
	wantNeeds := apps.Needs{
		CSP:         &apps.CSP{Connect: []string{"https://api.example.com"}, Resource: []string{"https://*.example.com:8443"}},
		Permissions: &apps.Permissions{Geolocation: true}, PrefersBorder: new(false),
	}
	if diff := cmp.Diff(wantNeeds, needs); diff != "" || err != nil {
		t.Errorf("NeedsOf: %v (-want +got):\n%s", err, diff)
	}
}

// An invalid view is refused when it is added: its URI (XAPP-26-001), its document (XAPP-26-003),
// its needs.
func TestAddViewRefuses(t *testing.T) {
	good := apps.View{URI: "ui://a/b", Name: "n", HTML: page}
	tests := []struct {
		name   string
		change func(*apps.View)
		want   string
	}{
		{"good", func(*apps.View) {}, ""},
		{"comments and a byte order mark", func(v *apps.View) { v.HTML = "\ufeff <!-- a -->\n<!doctype HTML >" }, ""},
		{"scheme", func(v *apps.View) { v.URI = "https://a/b" }, "ui://"},
		{"scheme in capitals", func(v *apps.View) { v.URI = "UI://a/b" }, "ui://"},
		{"no name in the URI", func(v *apps.View) { v.URI = "ui://" }, "ui://"},
		{"no URI", func(v *apps.View) { v.URI = "ui://a b%zz" }, "ui://"},
		{"no name", func(v *apps.View) { v.Name = "" }, "no name"},
		{"no document", func(v *apps.View) { v.HTML = "" }, "either HTML or Render"},
		{"two documents", func(v *apps.View) { v.Render = func(context.Context) (string, error) { return page, nil } }, "either HTML or Render"},
		{"part of a document", func(v *apps.View) { v.HTML = "<p>Hello</p>" }, "<!DOCTYPE html>"},
		{"no end", func(v *apps.View) { v.HTML = "<!-- <!DOCTYPE html>" }, "comment"},
		{"other type", func(v *apps.View) { v.HTML = "<!DOCTYPE htmlx>" }, "<!DOCTYPE html>"},
		{"bytes", func(v *apps.View) { v.HTML = page + "\xff" }, "UTF-8"},
		{"domain", func(v *apps.View) { v.Domain = "a.example;script-src *" }, "domain"},
		{"own domain", func(v *apps.View) { v.Domain = "www-example-com.host.example" }, ""},
	}
	for _, origin := range []string{"https://a.example", "wss://a.example", "https://*.a.example", "https://a.example:443", "http://localhost:8080", "ws://127.0.0.1:1"} {
		tests = append(tests, struct {
			name   string
			change func(*apps.View)
			want   string
		}{origin, func(v *apps.View) { v.CSP = &apps.CSP{Frame: []string{origin}} }, ""})
	}
	for _, origin := range []string{
		"", "*", "https://*", "https://*.", "a.example", "http://a.example", "data:", "'unsafe-eval'", "https://a.example/path", "https://a.example/",
		"https://u@a.example", "https://a.example;script-src *", "https://a.example https://b.example", "https://a.example\r\nx", "https://a.*.example",
		"https://a.example:", "https://a.example:x", "javascript://a.example", "https://-a.example",
	} {
		tests = append(tests, struct {
			name   string
			change func(*apps.View)
			want   string
		}{origin, func(v *apps.View) { v.CSP = &apps.CSP{BaseURI: []string{origin}} }, "origin"})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := good
			tt.change(&v)
			err := caught(func() { apps.Enable(&mcp.Server{}).AddView(v) })
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("AddView(%+v): %v, want %q", v, err, tt.want)
			}
		})
	}
}

// caught returns the error that f panics with.
func caught(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err, _ = v.(error)
		}
	}()
	f()
	return nil
}

// A tool can name only a view (XAPP-26-008) and an audience that exist.
func TestAddToolRefuses(t *testing.T) {
	tests := []struct {
		name string
		tool mcp.Tool
		link apps.Link
		want string
	}{
		{"no view", mcp.Tool{Name: "t"}, apps.Link{ResourceURI: "ui://none"}, `no view "ui://none"`},
		{"nobody", mcp.Tool{Name: "t"}, apps.Link{Visibility: []apps.Audience{}}, "visible to no one"},
		{"somebody else", mcp.Tool{Name: "t"}, apps.Link{Visibility: []apps.Audience{"user"}}, `"user"`},
		{"two links", mcp.Tool{Name: "t", Meta: mcp.Meta{"ui": json.RawMessage(`{}`)}}, apps.Link{}, "_meta.ui"},
		{"the old link", mcp.Tool{Name: "t", Meta: mcp.Meta{"ui/resourceUri": json.RawMessage(`"ui://a"`)}}, apps.Link{}, "_meta.ui/resourceUri"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ui := apps.Enable(&mcp.Server{})
			err := caught(func() {
				apps.AddTool(ui, tt.tool, tt.link, func(context.Context, struct{}) (string, error) { return "", nil })
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("AddTool: %v, want %q", err, tt.want)
			}
			if err := ui.HandleTool(tt.tool, tt.link, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("HandleTool: %v, want %q", err, tt.want)
			}
		})
	}
}

// A result without content is an error, and one that is structured gets its text
// (XAPP-26-034).
func TestToolsAnswerInText(t *testing.T) {
	srv := &mcp.Server{Name: "s"}
	ui := apps.Enable(srv)
	ui.AddView(apps.View{URI: "ui://v", Name: "v", Render: func(context.Context) (string, error) { return "<p>", nil }})
	results := map[string]*mcp.ToolResult{
		"empty":      {},
		"structured": {Structured: json.RawMessage(`{"a":1}`)},
		"both":       {Content: []mcp.Content{mcp.Text("one")}, Structured: json.RawMessage(`{"a":1}`)},
	}
	for name, res := range results {
		err := ui.HandleTool(mcp.Tool{Name: name}, apps.Link{ResourceURI: "ui://v"}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return res, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	for name, want := range map[string]string{"structured": `{"a":1}`, "both": "one"} {
		if res, err := s.CallTool(t.Context(), name, nil); err != nil || res.Text() != want {
			t.Errorf("%s = %+v, %v, want the text %q", name, res, err, want)
		}
	}
	var rpc *mcp.Error
	if res, err := s.CallTool(t.Context(), "empty", nil); !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "no content") {
		t.Errorf("empty = %+v, %v, want an error", res, err)
	}
	// The output of Render is checked when it is read.
	if res, err := s.ReadResource(t.Context(), "ui://v"); err == nil {
		t.Errorf("a view that is no document = %+v", res)
	}
}

// A host gives a model the tools that are for it (XAPP-26-010) and lets a view call those that
// are for views; an invalid link is for no audience.
func TestLinkOf(t *testing.T) {
	tests := []struct {
		meta       string
		uri        string
		model, app bool
		ok         bool
	}{
		{`{}`, "", true, true, true},
		{`{"ui":{"resourceUri":"ui://a"}}`, "ui://a", true, true, true},
		{`{"ui":{"resourceUri":"ui://a","visibility":["model","app"]}}`, "ui://a", true, true, true},
		{`{"ui":{"visibility":["app"]}}`, "", false, true, true},
		{`{"ui":{"visibility":["model"]}}`, "", true, false, true},
		{`{"ui":{"visibility":["later"]}}`, "", false, false, true},
		{`{"ui/resourceUri":"ui://old"}`, "ui://old", true, true, true},
		{`{"ui/resourceUri":"ui://old","ui":{"resourceUri":"ui://new"}}`, "ui://new", true, true, true},
		{`{"ui":{"resourceUri":"https://a"}}`, "", false, false, false},
		{`{"ui":{"visibility":"app"}}`, "", false, false, false},
		{`{"ui":[]}`, "", false, false, false},
	}
	for _, tt := range tests {
		tool := &mcp.Tool{Name: "t"}
		if err := json.Unmarshal([]byte(tt.meta), &tool.Meta); err != nil {
			t.Fatal(err)
		}
		l, err := apps.LinkOf(tool)
		if l.ResourceURI != tt.uri || l.For(apps.Model) != tt.model || l.For(apps.App) != tt.app || (err == nil) != tt.ok {
			t.Errorf("LinkOf(%s) = %+v, %v; want view %q, for the model %v, for views %v, ok %v", tt.meta, l, err, tt.uri, tt.model, tt.app, tt.ok)
		}
	}
	if n, err := apps.NeedsOf(mcp.ResourceContents{Meta: mcp.Meta{"ui": json.RawMessage(`{"csp":{"connectDomains":["https://a; x"]}}`)}}); err == nil {
		t.Errorf("NeedsOf a bad origin = %+v", n)
	}
	if n, err := apps.NeedsOf(mcp.ResourceContents{Meta: mcp.Meta{"ui": json.RawMessage(`{"domain":"a.example; script-src *"}`)}}); err == nil {
		t.Errorf("NeedsOf a bad domain = %+v", n)
	}
}

// A gateway passes links and views unchanged, and the client's declaration reaches the server.
func TestThroughAGateway(t *testing.T) {
	up := mcptest.Connect(t, weather(), &mcp.Client{Name: "g"}, mcp.V2026_07_28)
	gw := &gateway.Gateway{Name: "gw"}
	if err := gw.Set("weather", up); err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "gw", Handler: gw}
	ask := host(t, srv, renders)
	got := tools(t, ask("tools/list", ""))
	for name, meta := range got {
		if strings.HasSuffix(name, "refresh") && meta != `{"ui":{"resourceUri":"ui://weather/forecast","visibility":["app"]}}` {
			t.Errorf("%s has %s", name, meta)
		}
	}
	if len(got) != 4 {
		t.Errorf("tools = %q, want four", got)
	}
	m := ask("resources/read", `"uri":"ui://weather/forecast"`)
	if !strings.Contains(string(m.Result), `"mimeType":"text/html;profile=mcp-app"`) || !strings.Contains(string(m.Result), `"geolocation":{}`) {
		t.Errorf("view = %s, error %v", m.Result, m.Error)
	}
	if got := tools(t, host(t, srv, `{}`)("tools/list", "")); len(got) != 3 {
		t.Errorf("for a plain client, tools = %q, want three", got)
	}
}
