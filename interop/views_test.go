package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// teamSeen is what a client has seen of a view.
type teamSeen struct {
	Tools   []string          `json:"tools"`
	Calls   map[string]string `json:"calls"`   // result or error by name
	Refused string            `json:"refused"` // the error of the connection
}

// withKey sends a key with each request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// teamClients are the clients of three makers: each lists the tools of an endpoint and calls some.
func teamClients(t *testing.T) map[string]func(ctx context.Context, url, key string, names []string) (teamSeen, error) {
	called := func(text string, failed bool, err error) string {
		switch {
		case err != nil:
			return "error: " + err.Error()
		case failed:
			return "error: " + text
		}
		return text
	}
	script := []string{node(t), npmFile("peers", "views.mjs")}
	return map[string]func(ctx context.Context, url, key string, names []string) (teamSeen, error){
		"TypeScript": func(ctx context.Context, url, key string, names []string) (seen teamSeen, err error) {
			stdout, stderr, err := run(ctx, append(append(slices.Clone(script), url, key), names...))
			if err == nil {
				err = json.Unmarshal([]byte(stdout), &seen)
			}
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, stderr)
			}
			return seen, err
		},
		"go-sdk": func(ctx context.Context, url, key string, names []string) (teamSeen, error) {
			seen := teamSeen{Calls: map[string]string{}}
			transport := &gosdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withKey(key)}}
			s, err := gosdk.NewClient(&gosdk.Implementation{Name: "gosdk", Version: "1"}, nil).Connect(ctx, transport, nil)
			if err != nil {
				seen.Refused = err.Error()
				return seen, nil
			}
			defer s.Close()
			for tool, err := range s.Tools(ctx, nil) {
				if err != nil {
					return seen, err
				}
				seen.Tools = append(seen.Tools, tool.Name)
			}
			for _, name := range names {
				res, err := s.CallTool(ctx, &gosdk.CallToolParams{Name: name, Arguments: map[string]any{"message": name}})
				text := ""
				if err == nil && len(res.Content) > 0 {
					if c, ok := res.Content[0].(*gosdk.TextContent); ok {
						text = c.Text
					}
				}
				seen.Calls[name] = called(text, err == nil && res.IsError, err)
			}
			return seen, nil
		},
		"Patchbay": func(ctx context.Context, url, key string, names []string) (teamSeen, error) {
			seen := teamSeen{Calls: map[string]string{}}
			s, err := (&mcp.Client{Name: "own", Version: "1", Header: http.Header{"Authorization": {"Bearer " + key}}}).Dial(ctx, url)
			if err != nil {
				seen.Refused = err.Error()
				return seen, nil
			}
			defer s.Close()
			for tool, err := range s.Tools(ctx) {
				if err != nil {
					return seen, err
				}
				seen.Tools = append(seen.Tools, tool.Name)
			}
			for _, name := range names {
				res, err := s.CallTool(ctx, name, map[string]any{"message": name})
				text := ""
				if err == nil {
					text = res.Text()
				}
				seen.Calls[name] = called(text, err == nil && res.IsError, err)
			}
			return seen, nil
		},
	}
}

// Three clients of three teams use three views at once, with the official TypeScript client, go-sdk and
// our own. Each sees and may call exactly its own tools, cannot tell the others from absent ones, and may
// not use the view of another team.
func TestThreeTeams(t *testing.T) {
	t.Parallel()
	clients := teamClients(t)
	dir := t.TempDir()
	teams := []string{"dev", "ops", "sales"}
	keys := map[string]string{}
	var lines []byte
	gateway := "auth: [apikeys:keys.jsonl]\nviews:\n"
	for i, team := range teams {
		key, entry := auth.NewAPIKey(team)
		entry.Roles = []string{team}
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		keys[team], lines = key, append(append(lines, line...), '\n')
		gateway += fmt.Sprintf("  %s: {for: '%q in principal.roles', tools: [s%d_echo], rename: {s%d_echo: %s_say}}\n", team, team, i, i, team)
	}
	servers := map[string]any{}
	for i := range teams {
		servers[fmt.Sprint("s", i)] = map[string]any{"builtin": "everything"}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"keys.jsonl": lines, "gateway.yaml": []byte(gateway), "mcp.json": text} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := startServer(t, patchbay(t, "up", "--config", filepath.Join(dir, "mcp.json"), "--gateway", filepath.Join(dir, "gateway.yaml"), "--http", "127.0.0.1:0"), home(t)...)
	base := address[:strings.Index(address, "/mcp")+len("/mcp")]
	for state := ""; state != `"ready"`; time.Sleep(50 * time.Millisecond) { // its servers are not shown to strangers
		res, err := http.Get(strings.TrimSuffix(base, "/mcp") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		var brief struct{ State json.RawMessage }
		err = json.NewDecoder(res.Body).Decode(&brief)
		res.Body.Close()
		if state = string(brief.State); err != nil || t.Context().Err() != nil {
			t.Fatal(err, state)
		}
	}

	names := func(team string) []string {
		list := []string{"none_say", "s0_echo", "s1_echo", "s2_echo", "s0_add", "call_tool"}
		for _, other := range teams {
			list = append(list, other+"_say")
		}
		return slices.DeleteFunc(list, func(name string) bool { return name == team+"_say" })
	}
	var all sync.WaitGroup
	for maker, client := range clients {
		for round := range 3 {
			for i, team := range teams {
				all.Go(func() {
					where := fmt.Sprintf("%s as %s, round %d", maker, team, round)
					own := team + "_say"
					seen, err := client(t.Context(), base+"/v/"+team, keys[team], append(names(team), own))
					if err != nil || seen.Refused != "" {
						t.Errorf("%s: %v, %s", where, err, seen.Refused)
						return
					}
					if len(seen.Tools) != 1 || seen.Tools[0] != own {
						t.Errorf("%s sees %q, want %s", where, seen.Tools, own)
					}
					if got := seen.Calls[own]; !strings.Contains(got, own) || strings.HasPrefix(got, "error") {
						t.Errorf("%s: %s returned %q", where, own, got)
					}
					absent := strings.ReplaceAll(seen.Calls["none_say"], "none_say", "NAME")
					for _, name := range names(team) {
						if got := strings.ReplaceAll(seen.Calls[name], name, "NAME"); got != absent || !strings.HasPrefix(got, "error: ") {
							t.Errorf("%s: %s returned %q, an absent tool %q", where, name, got, absent)
						}
					}
					other := teams[(i+1)%len(teams)]
					seen, err = client(t.Context(), base+"/v/"+other, keys[team], nil)
					if err != nil || seen.Refused == "" || len(seen.Tools) > 0 {
						t.Errorf("%s at the view of %s: %+v, %v", where, other, seen, err)
					}
				})
			}
		}
	}
	all.Wait()
}
