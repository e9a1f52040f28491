package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// asked returns the params of the question that a call of "ask" leads to.
func asked(t testing.TB, s *mcp.Server, rev mcp.Revision) json.RawMessage {
	t.Helper()
	p := rawClient(t, s)
	if rev == mcp.V2026_07_28 {
		p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
		_, questions := inputRequired(t, p.answer(1))
		for _, q := range questions {
			return q.Params
		}
		t.Fatal("nothing was asked")
	}
	p.initialize(rev, canElicit)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	m := p.read()
	if m.Method != "elicitation/create" {
		t.Fatalf("got %s", show(&m))
	}
	return m.Params
}

// A question has its message and mode (ELIC-26-010): a form its schema (ELIC-26-012), a
// page its URL, and on 2025-11-25 an id (ELIC-26-015) of its own.
func TestElicitationOnTheWire(t *testing.T) {
	form := one(func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Elicit[alternative](ctx, "Which day?")
		return "", err
	})
	visit := one(func(ctx context.Context, _ struct{}) (string, error) {
		return "", mcp.ElicitURL(ctx, "Log in", "https://example.com/login?a=1&b=2")
	})
	for _, rev := range mcp.Revisions()[2:] {
		var got map[string]any
		if err := json.Unmarshal(asked(t, form, rev), &got); err != nil {
			t.Fatal(err)
		}
		schema, _ := got["requestedSchema"].(map[string]any)
		if mode, ok := got["mode"]; got["message"] != "Which day?" || schema["type"] != "object" || schema["properties"] == nil || ok && mode != "form" || !ok && rev != mcp.V2025_06_18 {
			t.Errorf("%s: the form is %v", rev, got)
		}
		if rev == mcp.V2025_06_18 {
			continue
		}
		got = nil
		if err := json.Unmarshal(asked(t, visit, rev), &got); err != nil {
			t.Fatal(err)
		}
		id, _ := got["elicitationId"].(string)
		if got["mode"] != "url" || got["message"] != "Log in" || got["url"] != "https://example.com/login?a=1&b=2" || (id != "") != (rev == mcp.V2025_11_25) {
			t.Errorf("%s: the page is %v", rev, got)
		}
		if again := asked(t, visit, rev); id != "" && strings.Contains(string(again), id) {
			t.Errorf("%s: two pages have the id %s", rev, id)
		}
	}
}

// A page to visit needs a valid URL (ELIC-26-016); otherwise the question is not sent.
func TestElicitURLNeedsAURL(t *testing.T) {
	for url, want := range map[string]bool{
		"https://example.com/": true, "http://[::1]:80/x?y#z": true, "app:open": true,
		"": false, "login": false, "/login": false, "//example.com/": false, "https://": false, "http://[::1": false, "http://a b/": false, "http://%zz/": false, ":x": false,
	} {
		p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) { return "", mcp.ElicitURL(ctx, "?", url) }))
		p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
		m := p.answer(1)
		if got := strings.Contains(string(m.Result), `"input_required"`); got != want {
			t.Errorf("ElicitURL %q: %s", url, show(&m))
		}
	}
}

// The answers of a client: accept with content, decline and cancel, whose content is ignored
// (ELIC-26-051). Content is checked (ELIC-26-047), and any other answer is an error (ELIC-26-026).
// Content may have values that were not asked for, and null for optional ones (trap 17).
func TestAnswersToElicitation(t *testing.T) {
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		c, err := mcp.Elicit[struct {
			Color string `json:"color" enum:"red,green"`
			Shade string `json:"shade,omitempty" enum:"light,dark"`
		}](ctx, "Which?")
		switch {
		case errors.Is(err, mcp.ErrDeclined):
			return "declined", nil
		case errors.Is(err, mcp.ErrDismissed):
			return "cancelled", nil
		case err != nil:
			return "", err
		}
		return c.Color, nil
	})
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"color":"red"}}`:                                       "red",
		`{"action":"accept","content":{"color":"red","shade":null,"note":{"by":"the form"}}}`: "red",
		`{"action":"accept","content":{"color":null}}`:                                        "error",
		`{"action":"decline"}`:                           "declined",
		`{"action":"decline","content":{"color":"red"}}`: "declined",
		`{"action":"cancel"}`:                            "cancelled",
		`{"action":"cancel","content":7}`:                "cancelled",
		`{"action":"accept","content":{"color":"blue"}}`: "error",
		`{"action":"accept","content":{}}`:               "error",
		`{"action":"accept","content":7}`:                "error",
		`{"action":"accept"}`:                            "error",
		`{"action":"Accept","content":{"color":"red"}}`:  "error",
		`{"action":"yes","content":{"color":"red"}}`:     "error",
		`{"content":{"color":"red"}}`:                    "error",
		`{}`:                                             "error",
	} {
		bothEras(t, func(t *testing.T, rev mcp.Revision) {
			p := rawClient(t, s)
			var m jsonrpc.Message
			if rev == mcp.V2026_07_28 {
				p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
				state, questions := inputRequired(t, p.answer(1))
				for key := range questions {
					p.send(modern(2, "tools/call", canElicit, `"name":"ask","inputResponses":{`+quote(key)+`:`+answer+`},"requestState":`+quote(state)))
				}
				m = p.answer(2)
			} else {
				p.initialize(rev, canElicit)
				p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
				q := p.read()
				p.sendf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID.AppendJSON(nil), answer)
				m = p.answer(2)
			}
			var res struct {
				Content []struct{ Text string }
				IsError bool
			}
			if err := json.Unmarshal(m.Result, &res); err != nil || len(res.Content) != 1 {
				t.Fatalf("%s: got %s", answer, show(&m))
			}
			if got := res.Content[0].Text; res.IsError != (want == "error") || !res.IsError && got != want {
				t.Errorf("%s: got %s, want %s", answer, show(&m), want)
			}
		})
	}
}

// legacyServer opens a session of c with a server of rev written by hand.
func legacyServer(t testing.TB, c *mcp.Client, rev mcp.Revision) *peer {
	t.Helper()
	near, far := jsonrpc.Pipe()
	p := &peer{t: t, conn: far}
	c.Revisions = []mcp.Revision{rev}
	opened := make(chan *mcp.Session, 1)
	go func() {
		s, err := c.Connect(t.Context(), mcptest.Wire(near))
		if err != nil {
			t.Error(err)
			near.Close()
		}
		opened <- s
	}()
	p.send(initialized(p.read(), string(rev))[0])
	p.read()
	s := <-opened
	if s == nil {
		t.FailNow()
	}
	t.Cleanup(func() { s.Close() })
	return p
}

// How a client answers questions: one without a mode is a form (ELIC-26-011), one of a mode
// that is not declared is refused by its code (ELIC-25-009), and content goes with an
// accepted form alone (ELIC-26-051). The id of a page means nothing to it (ELIC-25-013),
// nor does the news that one it never heard of is done (ELIC-25-003). Pages are not looked
// at (ELIC-26-036).
func TestClientAnswersElicitation(t *testing.T) {
	var hits atomic.Int64
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer page.Close()
	const form = `"requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}`
	const done = `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%s}}`
	url := `"url":` + quote(page.URL)
	tests := []struct {
		name, params, action string
		rev                  mcp.Revision
		want                 string // result, or empty for -32602
	}{
		{"no mode", `"message":"?",` + form, "accept", mcp.V2025_11_25, `{"action":"accept","content":{"a":"b"}}`},
		{"no mode, older", `"message":"?",` + form, "accept", mcp.V2025_06_18, `{"action":"accept","content":{"a":"b"}}`},
		{"form", `"mode":"form","message":"?",` + form, "accept", mcp.V2025_11_25, `{"action":"accept","content":{"a":"b"}}`},
		{"declined", `"mode":"form","message":"?",` + form, "decline", mcp.V2025_11_25, `{"action":"decline"}`},
		{"cancelled", `"mode":"form","message":"?",` + form, "cancel", mcp.V2025_11_25, `{"action":"cancel"}`},
		{"page", `"mode":"url","message":"?","elicitationId":"x",` + url, "accept", mcp.V2025_11_25, `{"action":"accept"}`},
		{"page of an odd id", `"mode":"url","message":"?","elicitationId":" ../%00\u0000<\ud83d\ude00",` + url, "accept", mcp.V2025_11_25, `{"action":"accept"}`},
		{"page, declined", `"mode":"url","message":"?","elicitationId":"x",` + url, "decline", mcp.V2025_11_25, `{"action":"decline"}`},
		{"an unknown mode", `"mode":"voice","message":"?"`, "accept", mcp.V2025_11_25, ""},
		{"page, not declared", `"mode":"url","message":"?",` + url, "accept", mcp.V2025_06_18, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := legacyServer(t, answering(tt.action, map[string]any{"a": "b"}), tt.rev)
			for _, id := range []string{`"x"`, `"unknown"`, `""`, `7`} {
				p.send(fmt.Sprintf(done, id))
			}
			p.send(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{` + tt.params + `}}`)
			m := p.answer(1)
			if tt.want == "" {
				wantError(t, m, jsonrpc.CodeInvalidParams)
			} else if string(m.Result) != tt.want {
				t.Errorf("got %s, want %s", show(&m), tt.want)
			}
			p.send(fmt.Sprintf(done, `"x"`))
			p.send(fmt.Sprintf(done, `"x"`))
			p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			if m := p.answer(2); string(m.Result) != `{}` {
				t.Errorf("ping = %s", show(&m))
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the page was fetched %d times", n)
	}
}

// A handler that cannot wait for a visit returns the error of 2025-11-25 (ELIC-25-008), which
// 2026-07-28 lacks.
func TestURLElicitationRequired(t *testing.T) {
	s := one(func(context.Context, struct{}) (string, error) {
		return "", &mcp.Error{Code: -32042, Message: "log in first", Data: json.RawMessage(`{"elicitations":[{"mode":"url","message":"Log in","url":"https://example.com/","elicitationId":"1"}]}`)}
	})
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		_, err := mcptest.Connect(t, s, nothing(), rev).CallTool(t.Context(), "ask", nil)
		want := map[mcp.Revision]int{mcp.V2025_11_25: -32042, mcp.V2026_07_28: jsonrpc.CodeInternal}[rev]
		if !errors.Is(err, &mcp.Error{Code: want}) {
			t.Errorf("call = %v, want code %d", err, want)
		}
	})
}
