package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// In a view with a search, a result of a few MB is cut, and its rest can be read to its end. One of 40 MB is too
// long for the connection to the server: the call fails with words that say so, and other calls work, those in
// progress too.
func TestUpSearchLargeResults(t *testing.T) {
	web := httptest.NewServer(newLarge())
	t.Cleanup(web.Close)
	r, _, header := audited(t, "auth: [apikeys:keys.jsonl]\nviews: {search: {mode: search, budget: 64KiB}}\n",
		map[string]any{"pipe": stubServer(t, "large"), "web": map[string]any{"url": web.URL}})
	s, err := (&mcp.Client{Name: "desk", Header: header}).Dial(t.Context(), r.url+"/v/search")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := func(server string, bytes int) (*mcp.ToolResult, error) {
		return s.CallTool(t.Context(), "call_tool", map[string]any{"name": server + "_large", "arguments": map[string]any{"bytes": bytes}})
	}
	for _, server := range []string{"pipe", "web"} {
		const whole = 4 << 20
		res, err := call(server, whole)
		if err != nil || len(res.JSON()) > 80<<10 || len(res.Content) != 2 {
			t.Fatalf("%s: a result of 4 MB: %d bytes, %v", server, len(res.JSON()), err)
		}
		sum, parts := len(res.Content[0].(mcp.TextContent).Text), 0
		for uri := res.Content[1].(mcp.ResourceLink).URI; uri != ""; parts++ {
			read, err := s.ReadResource(t.Context(), uri)
			if err != nil {
				t.Fatal(err)
			}
			sum += len(read.Contents[0].Text)
			if uri = ""; len(read.Contents) > 1 {
				uri = read.Contents[1].URI
			}
		}
		if sum != whole || parts < 60 {
			t.Errorf("%s: %d bytes in %d parts, want %d", server, sum, parts, whole)
		}

		slow := make(chan error, 1)
		ready, end := filepath.Join(t.TempDir(), "ready"), filepath.Join(t.TempDir(), "end")
		go func() {
			_, err := s.CallTool(t.Context(), "call_tool", map[string]any{"name": server + "_hang", "arguments": map[string]any{"ready": ready, "until": end}})
			slow <- err
		}()
		until(t, "a call is in progress", func() bool { _, err := os.Stat(ready); return err == nil })
		res, err = call(server, 40<<20)
		if err == nil || !strings.Contains(err.Error(), "over the limit of 16777216 bytes") {
			t.Errorf("%s: a result of 40 MB: %.300v, %v", server, res, err)
		}
		if res, err = call(server, 10); err != nil || res.Text() != "0123456789" {
			t.Errorf("%s: the next call: %.300v, %v", server, res, err)
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := <-slow; err != nil {
			t.Errorf("%s: the call in progress: %v", server, err)
		}
	}
}

// The audit log has a call by call_tool as a call of the inner tool: with the view, one begin and one end. The
// other two tools of the search have a line each, and so have calls of what the view does not have: with the name that was
// tried, also one that is long and has control characters, while the caller gets one answer for all of them.
func TestUpSearchAudit(t *testing.T) {
	r, log, header := audited(t, "auth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\nviews:\n  search: {tools: ['a_*'], mode: search, rename: {a_args: count}}\n",
		map[string]any{"a": stubServer(t), "b": stubServer(t)})
	s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header}).Dial(t.Context(), r.url+"/v/search")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hostile := "a_\x1b[2J\n\u202e\u0000" + strings.Repeat("é", 5000)
	answers := map[string]string{}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"call_tool", map[string]any{"name": "count", "arguments": map[string]any{"count": 1}}},
		{"call_tool", map[string]any{"name": "a_free", "arguments": map[string]any{}}},
		{"call_tool", map[string]any{"name": "b_args", "arguments": map[string]any{"count": 1}}},
		{"call_tool", map[string]any{"name": "a_args", "arguments": map[string]any{"count": 1}}},
		{"call_tool", map[string]any{"name": "z_none"}},
		{"call_tool", map[string]any{"name": hostile}},
		{"find_tools", map[string]any{"query": "arguments"}},
		{"describe_tool", map[string]any{"name": "count"}},
		{"describe_tool", map[string]any{"name": "b_args"}},
		{"describe_tool", map[string]any{"name": "z_none"}},
		{"describe_tool", map[string]any{"name": hostile}},
	} {
		res, err := s.CallTool(t.Context(), c.tool, c.args)
		name, _ := c.args["name"].(string)
		if known := name == "" || name == "count" || name == "a_free"; known != (err == nil) {
			t.Errorf("%s %v: %v, %v", c.tool, c.args, res, err)
		}
		if rpc := (*mcp.Error)(nil); errors.As(err, &rpc) {
			answer := fmt.Sprintf("%d %s %s", rpc.Code, rpc.Message, rpc.Data)
			if before, ok := answers[name]; ok && answer != before {
				t.Errorf("%s answers for %s with %q, and call_tool with %q", c.tool, name, answer, before)
			}
			answers[name] = answer
		}
	}
	for _, name := range []string{"b_args", "a_args"} { // at another server; outside of the view by its rename
		if got := strings.ReplaceAll(answers[name], name, "z_none"); got == "" || got != answers["z_none"] {
			t.Errorf("the answer for %s is %q, and that for a tool that does not exist %q", name, got, answers["z_none"])
		}
	}
	if strings.ContainsAny(answers[hostile], "\x1b\n\u202e\u0000") || len(answers[hostile]) > 1000 {
		t.Errorf("the answer for a hostile name is %q", answers[hostile])
	}
	r.stop(t)
	var got []string
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != audit.CallBegin && e.Kind != audit.CallEnd && e.Kind != audit.Denied {
			continue
		}
		if e.Method != "" {
			continue
		}
		if strings.HasPrefix(e.Tool, "a_\x1b") {
			if len(e.Tool) > 200 || !strings.HasSuffix(e.Tool, "é…") || bytes.ContainsAny(e.Line(), "\x1b\n\u202e\u0000") {
				t.Errorf("the line of a hostile name is %q", e.Line())
			}
			e.Tool = "hostile"
		}
		line := fmt.Sprint(e.Kind, " ", e.Tool, " ", e.Outcome, " ", e.Fault)
		if e.Server != nil {
			line += " at " + e.Server.Name
		}
		if e.Decision != nil {
			line += " by " + e.Decision.Rule
		}
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		`call.begin args at a by view "search"`, `call.end args ok at a by view "search"`,
		`call.begin free at a by view "search"`, `call.end free ok at a by view "search"`,
		`denied b_args denied at search by view "search"`, `denied a_args denied at search by view "search"`, // names that the view does not have
		`denied z_none denied unknown at search by view "search"`, `denied hostile denied unknown at search by view "search"`,
		`call.end find_tools ok`, `call.end describe_tool ok`,
		`denied b_args denied at search by view "search"`, `denied z_none denied unknown at search by view "search"`,
		`denied hostile denied unknown at search by view "search"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
