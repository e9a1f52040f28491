package host_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// linesOf returns the lines of a file that are not comments.
func linesOf(t *testing.T, path string) (out []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// Of 300 tools the right one is found by the first search, in the words of the question, nine times of ten. The tools of a
// request take at most 1,500 tokens, and the three of a small server are among them.
func TestFindsAmongThreeHundred(t *testing.T) {
	servers := map[string]*mcp.Server{"clock": clock(), "one": {Name: "one", Version: "1"}, "two": {Name: "two", Version: "1"}}
	mcp.AddTool(servers["clock"], mcp.Tool{Name: "alarm", Description: "Rings at a time."}, func(context.Context, struct{}) (string, error) { return "", nil })
	all := 3
	for _, line := range linesOf(t, "../internal/toolsearch/testdata/tools.txt") {
		name, rest, _ := strings.Cut(line, ": ")
		description, arguments, _ := strings.Cut(rest, " (")
		properties := map[string]any{}
		for _, a := range strings.Split(strings.Trim(arguments, ")"), ", ") {
			properties[a] = map[string]string{"type": "string"}
		}
		input, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		mcp.AddTool(servers[[]string{"one", "two"}[all%2]], mcp.Tool{Name: name, Description: description, InputSchema: input}, func(context.Context, json.RawMessage) (string, error) { return "", nil })
		all++
	}
	servers["many"] = many(300 - all)
	m := new(talker)
	h := &host.Host{Model: m}
	var list []host.Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		list = append(list, inMemory(name, servers[name]))
	}
	newHost(t, h, list...)
	found, asked, most := 0, 0, 0
	for _, line := range linesOf(t, "../internal/toolsearch/testdata/questions.txt") {
		name, question, _ := strings.Cut(line, " | ")
		query, err := json.Marshal(map[string]string{"query": question})
		if err != nil {
			t.Fatal(err)
		}
		m.answers = append(m.answers, want("search_tools "+string(query)), say("done"))
		if _, err := h.NewConversation().Send(t.Context(), question); err != nil {
			t.Fatal(err)
		}
		first, second := m.request(t, 2*asked), m.request(t, 2*asked+1)
		asked++
		if got := toolsIn(first); got != "read_more search_tools describe_tool clock_alarm clock_now clock_tick" {
			t.Fatalf("the first request has the tools %s", got)
		}
		raw, err := json.Marshal(second.Tools)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(raw)/4)
		if tools := strings.Fields(toolsIn(second)); len(tools) > 6+8 {
			t.Errorf("%d tools are offered after a search", len(tools))
		} else if slices.ContainsFunc(tools, func(of string) bool { return of == "one_"+name || of == "two_"+name }) {
			found++
		} else {
			t.Logf("%q does not find %s: %q", question, name, tools)
		}
	}
	t.Logf("%d of %d found; the tools of a request take at most %d tokens", found, asked, most)
	if asked != 50 || found < 45 || most > 1500 {
		t.Errorf("%d of %d questions find their tool, want 45 of 50, and the tools of a request take %d tokens, want at most 1,500", found, asked, most)
	}
}
