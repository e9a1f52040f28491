package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A client cannot make lines long, neither with long texts nor with ones that JSON escapes.
func TestLongTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	for _, char := range []string{"\x01", `"`, "x", "é", "\xff"} {
		text := strings.Repeat(char, 1<<20)
		write(t, l, audit.Entry{Kind: audit.Denied, Method: text, Tool: text, Name: text, Reason: text, Client: &audit.Client{Name: text, Version: text}})
	}
	write(t, l, audit.Entry{Kind: audit.CallEnd, Tool: strings.Repeat("t", 128), Name: strings.Repeat("n", 1000)})
	list := calls(t, path)
	for _, e := range list[:5] {
		if len(e.Line()) > 3<<10 || !strings.HasSuffix(e.Tool, "…") {
			t.Errorf("a line has %d bytes: %.200s", len(e.Line()), e.Line())
		}
	}
	if e := list[5]; len(e.Tool) != 128 || len(e.Name) != 1000 {
		t.Errorf("usual names are clipped: %s", e.Line())
	}
}

// The reason of a refused request has no query of a URI.
func TestReasonWithoutQuery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	refuse := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var params struct{ URI string }
		if err := json.Unmarshal(req.Params, &params); err != nil {
			t.Error(err)
		}
		return nil, refusal{mcp.Errorf(-32602, "the policy refuses %s and https://b/?token=planted", params.URI)}
	})
	h := (&audit.Trail{Log: l}).Outer()(refuse)
	for _, method := range []string{"resources/subscribe", "resources/read"} {
		_, err := h.Handle(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(`{"uri":"https://a/x?q=1 planted"}`)})
		if err == nil {
			t.Fatal("not refused")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("planted")) {
		t.Errorf("%v: %s", err, data)
	}
	if list := calls(t, path); len(list) != 2 || list[0].Kind != audit.Denied || !strings.Contains(list[0].Reason, "refuses https://a/x and https://b/") {
		t.Errorf("%s", data)
	}
}

// refusal is a refused request.
type refusal struct{ error }

func (refusal) HTTPHeader(context.Context) (status int, h http.Header) { return 403, nil }

func (r refusal) Unwrap() error { return r.error }

// A flood of refused requests has some lines and their number, which Close does not lose.
func TestFlood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	refuse := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, refusal{mcp.Errorf(-32000, "too many")}
	})
	h := (&audit.Trail{Log: l}).Outer()(refuse)
	const n, callers = 5000, 2
	for i := range n * callers {
		ctx := auth.With(t.Context(), &auth.Principal{ID: []string{"ada", "bob"}[i%callers]})
		if _, err := h.Handle(ctx, &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)}); err == nil {
			t.Fatal("not refused")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sum, lines := map[string]int{}, 0
	for _, e := range calls(t, path) {
		lines++
		sum[e.Principal.ID] += 1 + e.More
	}
	if sum["ada"] != n || sum["bob"] != n {
		t.Errorf("the lines count %v requests, want %d each", sum, n)
	}
	if lines > n {
		t.Errorf("%d requests have %d lines", n*callers, lines)
	}
}

// However many callers there are, the log tells a bounded number apart, and counts all.
func TestFloodOfCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	h := (&audit.Trail{Log: l}).Outer()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, refusal{mcp.Errorf(-32000, "too many")}
	}))
	const n = 5000
	for i := range n {
		ctx := auth.With(t.Context(), &auth.Principal{ID: strconv.Itoa(i)})
		if _, err := h.Handle(ctx, &mcp.Request{Method: "tools/list"}); err == nil {
			t.Fatal("not refused")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, e := range calls(t, path) {
		sum += 1 + e.More
	}
	if sum != n {
		t.Errorf("the lines count %d requests, want %d", sum, n)
	}
}

// A caller cannot fill the log with calls that fail before they leave; those that leave all have
// their lines, and a further attempt has no long name.
func TestFloodOfUnknownTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone})
	trail := &audit.Trail{Log: l}
	fails := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, mcp.Errorf(-32602, "unknown") })
	around := trail.Around("s")(fails)
	h := trail.Outer()(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == "tools/call" { // it does not leave
			return fails.Handle(ctx, req)
		}
		if _, err := around.Handle(ctx, req); err == nil {
			t.Error("no error")
		}
		return around.Handle(ctx, req)
	}))
	const n, reads = 2000, 30
	long, _ := json.Marshal(map[string]string{"uri": "x://h/" + strings.Repeat("u", 2000)})
	for range n {
		h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)})
	}
	for range reads {
		h.Handle(t.Context(), &mcp.Request{Method: "resources/read", Params: long})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sum, lines, kinds := 0, 0, map[audit.Kind]int{}
	for _, e := range calls(t, path) {
		if e.Method == "" {
			lines++
			sum += 1 + e.More
			continue
		}
		kinds[e.Kind]++
		if e.Kind == audit.CallRetry && len(e.Name) > 210 {
			t.Errorf("a further attempt: %s", e.Line())
		}
	}
	if sum != n || lines > n/4 {
		t.Errorf("%d lines count %d calls, want %d", lines, sum, n)
	}
	if kinds[audit.CallBegin] != reads || kinds[audit.CallRetry] != reads || kinds[audit.CallEnd] != reads {
		t.Errorf("calls that left: %v", kinds)
	}
}
