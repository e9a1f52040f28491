package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Results of tools that only read are answered from the cache of a trusted server, for one principal,
// credential and set of headers, until something may have changed. The audit log has an end of such a
// call and no begin.
func TestUpCache(t *testing.T) {
	runtimeFolder(t)
	var runs atomic.Int64
	srv := &mcp.Server{Name: "db", Version: "1"}
	add := func(name string, reads bool, f func(ctx context.Context, n int64) (string, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnly: &reads}}, func(ctx context.Context, in struct {
			X int `json:"x,omitempty"`
			Y int `json:"y,omitempty"`
		}) (string, error) {
			return f(ctx, runs.Add(1))
		})
	}
	count := func(_ context.Context, n int64) (string, error) { return fmt.Sprint(n), nil }
	add("read", true, count)
	add("write", false, count)
	add("fail", true, func(_ context.Context, n int64) (string, error) { return "", errors.New("no") })
	add("ask", true, func(ctx context.Context, n int64) (string, error) {
		yes, err := mcp.Confirm(ctx, "sure?")
		return fmt.Sprint(yes), err
	})
	back := httptest.NewServer(srv)
	t.Cleanup(back.Close) // after the end of up

	dir := t.TempDir()
	var lines []byte
	header := map[string]http.Header{}
	for _, name := range []string{"ada", "bob", "ada"} {
		key, entry := auth.NewAPIKey(name)
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
		if header[name] != nil {
			name = "ada with another key"
		}
		header[name] = http.Header{"Authorization": {"Bearer " + key}}
	}
	header["ada of a tenant"] = header["ada"].Clone()
	header["ada of a tenant"].Set("X-Tenant", "two")
	for name, text := range map[string]string{"keys.jsonl": string(lines), "gateway.yaml": "auth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\nviews:\n  all: {}\n  renamed: {rename: {db_read: see}}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(trusted bool) map[string]any {
		return map[string]any{"url": back.URL, "patchbay": map[string]any{"cache": "1h", "trusted": trusted}}
	}
	r := startUp(t, map[string]any{"db": entry(true), "stranger": entry(false)}, "--gateway", filepath.Join(dir, "gateway.yaml"))
	r.stderr.await(t, `stranger: "cache" has no effect without "trusted": true`)
	call := func(who, path, tool, args string, revisions ...mcp.Revision) {
		t.Helper()
		c := &mcp.Client{Name: "desk", Version: "1", Header: header[who], Revisions: revisions, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
		s, err := c.Dial(t.Context(), r.url+path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if res, err := s.CallTool(t.Context(), tool, json.RawMessage(args)); err != nil || res.IsError != strings.Contains(tool, "fail") {
			t.Fatal(res, err)
		}
	}
	older := mcp.V2025_11_25
	for i, c := range []struct {
		who, path, tool, args string
		runs                  int64
		revisions             []mcp.Revision
	}{
		{"ada", "", "db_read", `{"x":1,"y":2}`, 1, nil},
		{"ada", "", "db_read", `{ "y":2, "x":1 }`, 0, nil},
		{"ada", "/s/db", "read", `{"x":1,"y":2}`, 0, nil},
		{"ada", "/v/renamed", "see", `{"x":1,"y":2}`, 0, nil},
		{"ada", "", "db_read", `{"x":1}`, 1, nil},
		{"bob", "", "db_read", `{"x":1}`, 1, nil},
		{"ada with another key", "", "db_read", `{"x":1}`, 1, nil},
		{"ada of a tenant", "", "db_read", `{"x":1}`, 1, nil},
		{"ada of a tenant", "", "db_read", `{"x":1}`, 0, nil},
		{"ada", "", "db_read", `{"x":1}`, 1, []mcp.Revision{older}}, // the server sees the revision
		{"ada", "", "db_read", `{"x":1}`, 0, []mcp.Revision{older}},
		{"ada", "", "db_fail", `{}`, 1, nil},
		{"ada", "", "db_fail", `{}`, 1, nil},
		{"ada", "", "db_ask", `{}`, 2, nil}, // it runs again with the answer
		{"ada", "", "db_ask", `{}`, 2, nil},
		{"ada", "", "db_ask", `{}`, 2, []mcp.Revision{older}},
		{"ada", "", "db_ask", `{}`, 2, []mcp.Revision{older}},
		{"ada", "", "stranger_read", `{"x":1}`, 1, nil},
		{"ada", "", "stranger_read", `{"x":1}`, 1, nil},
		{"ada", "", "db_read", `{"x":1}`, 0, nil},
		{"bob", "", "db_write", `{}`, 1, nil},
		{"ada", "", "db_read", `{"x":1}`, 1, nil},
		{"ada", "", "db_read", `{"x":1}`, 0, nil},
	} {
		before := runs.Load()
		call(c.who, c.path, c.tool, c.args, c.revisions...)
		if got := runs.Load() - before; got != c.runs {
			t.Errorf("call %d, %s %s%s %s: the tool ran %d times, want %d", i, c.who, c.path, c.tool, c.args, got, c.runs)
		}
	}

	// Another list of tools may mean that the tools do something else.
	s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header["ada"]}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add("new", true, count)
	until(t, "the new tool", func() bool {
		for tool, err := range s.Tools(t.Context(), mcp.WithoutCache()) {
			if err == nil && tool.Name == "db_new" {
				return true
			}
		}
		return false
	})
	before := runs.Load()
	call("ada", "", "db_read", `{"x":1}`)
	if runs.Load() != before+1 {
		t.Error("a result of before the change of the tools is returned")
	}

	r.stop(t)
	var begun, cached []string
	for e, err := range audit.Read(filepath.Join(dir, "audit.jsonl")) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == audit.CallBegin:
			begun = append(begun, e.Call)
		case e.Kind == audit.CallEnd && e.Cached:
			cached = append(cached, e.Call)
		}
	}
	if len(cached) != 7 || slices.ContainsFunc(cached, func(id string) bool { return slices.Contains(begun, id) }) {
		t.Errorf("calls from the cache %q, begun %q", cached, begun)
	}
}

// Contents of resources are read from the cache of a trusted server for as long as the server says, by the same caller,
// until a change is announced or a tool that may write is called. Public ones are for all callers.
func TestUpCacheOfReads(t *testing.T) {
	runtimeFolder(t)
	var reads atomic.Int64
	srv := &mcp.Server{Name: "db", Version: "1"}
	for uri, hint := range map[string]mcp.CacheHint{"db://own": {TTL: time.Hour}, "db://public": {TTL: time.Hour, Public: true}, "db://never": {}} {
		mcp.AddResource(srv, mcp.Resource{URI: uri, Name: uri}, func(context.Context) (*mcp.ReadResult, error) {
			return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: uri, Text: fmt.Sprint(reads.Add(1))}}, Cache: hint}, nil
		})
	}
	mcp.AddTool(srv, mcp.Tool{Name: "write"}, func(context.Context, struct{}) (string, error) { return "", nil })
	back := httptest.NewServer(srv)
	t.Cleanup(func() { back.CloseClientConnections(); back.Close() }) // after the end of the gateway
	dir := t.TempDir()
	var lines []byte
	header := map[string]http.Header{}
	for _, name := range []string{"ada", "bob"} {
		key, entry := auth.NewAPIKey(name)
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
		header[name] = http.Header{"Authorization": {"Bearer " + key}}
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.jsonl"), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(trusted bool) map[string]any {
		return map[string]any{"url": back.URL, "patchbay": map[string]any{"cache": "30m", "trusted": trusted}}
	}
	r := startUp(t, map[string]any{"db": entry(true), "stranger": entry(false)}, "--auth", "apikeys:"+filepath.Join(dir, "keys.jsonl"))
	session := func(who, path string, revisions ...mcp.Revision) *mcp.Session {
		t.Helper()
		s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header[who], Revisions: revisions}).Dial(t.Context(), r.url+path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	read := func(s *mcp.Session, uri string) *mcp.ReadResult {
		t.Helper()
		res, err := s.ReadResource(t.Context(), uri, mcp.WithoutCache())
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	ada, again, bob := session("ada", "/s/db"), session("ada", "/s/db"), session("bob", "/s/db")
	older := session("ada", "/s/db", mcp.V2025_11_25)
	for i, c := range []struct {
		s     *mcp.Session
		uri   string
		reads int64
	}{
		{ada, "db://own", 1}, {ada, "db://own", 0}, {again, "db://own", 0}, {bob, "db://own", 1}, {bob, "db://own", 0},
		{older, "db://own", 1}, {older, "db://own", 0}, // the server sees the revision
		{ada, "db://public", 1}, {bob, "db://public", 0}, {session("bob", "/s/stranger"), "db://public", 1},
		{ada, "db://never", 1}, {ada, "db://never", 1},
		{session("ada", "/s/stranger"), "db://own", 1}, {session("ada", "/s/stranger"), "db://own", 1},
	} {
		before := reads.Load()
		read(c.s, c.uri)
		if got := reads.Load() - before; got != c.reads {
			t.Errorf("read %d, of %s: the server read %d times, want %d", i, c.uri, got, c.reads)
		}
	}
	if hint := read(ada, "db://own").Cache; hint.Public || hint.TTL <= 0 || hint.TTL > 30*time.Minute {
		t.Errorf("from the cache: %+v, want what is left of the 30 minutes of the entry", hint)
	}
	old := read(ada, "db://own").Contents[0].Text
	if _, err := ada.CallTool(t.Context(), "write", nil); err != nil {
		t.Fatal(err)
	}
	now := read(ada, "db://own").Contents[0].Text
	if now == old {
		t.Error("contents of before a call that may write are returned")
	}
	events := make(chan mcp.Event, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for e, err := range ada.Watch(ctx, "db://own") {
			if err == nil {
				events <- e
			}
		}
	}()
	until(t, "the news arrives", func() bool {
		srv.ResourceUpdated("db://own")
		select {
		case e := <-events:
			return e.Method == "notifications/resources/updated"
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
	if read(ada, "db://own").Contents[0].Text == now {
		t.Error("contents of before their change are returned")
	}
}
