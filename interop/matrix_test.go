package interop

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	legacy   = []string{v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25}
	all      = slices.Concat(legacy, []string{v2026_07_28})
	withAuto = slices.Concat(all, []string{auto})
)

// peers are the implementations of the matrix.
var peers = []peer{
	{name: "gosdk", ask: askGoSDK, serve: goServer("gosdk"), as: withAuto, serves: all},
	{name: "mcpgo", ask: askMCPGo, serve: goServer("mcpgo"), as: withAuto, serves: all},
	{name: "ts1", ask: askScript("client-v1.mjs"), serve: scriptServer("server-v1.mjs"),
		as: []string{v2025_11_25}, serves: legacy, node: true},
	{name: "ts2", ask: askScript("client-v2.mjs"), serve: scriptServer("server-v2.mjs"),
		as: []string{v2025_11_25, v2026_07_28, auto}, serves: all, node: true},
}

// A gap is a step that a foreign peer does differently. An empty client, server or
// wire means any.
type gap struct {
	client, server string
	wire           wire
	modern         bool
	step           string
}

// gaps are the known gaps of the pinned versions. Patchbay has none.
var gaps = []gap{
	// It only closes the connection, which does not cancel up to 2025-11-25.
	{client: "mcpgo", wire: web, step: "cancelled"},
	// It posts notifications/cancelled, which 2026-07-28 has on stdio only, and treats
	// the refusal as the end of the connection.
	{client: "gosdk", server: "ts2", wire: web, modern: true, step: "cancelled"},
	{client: "gosdk", server: "mcpgo", wire: web, modern: true, step: "cancelled"},
	// It sends the questions of one round to older clients, and forwards those of a
	// second round as a result that they do not know.
	{server: "gosdk", step: "twice"},
}

// gapsOf returns the steps to skip.
func gapsOf(client, server string, w wire, revision string) (steps []string) {
	for _, g := range gaps {
		if (g.client == "" || g.client == client) && (g.server == "" || g.server == server) &&
			(g.wire == "" || g.wire == w) && g.modern == (revision >= v2026_07_28) {
			steps = append(steps, g.step)
		}
	}
	if slices.Contains(steps, "cancelled") {
		steps = append(steps, "askBeside", "sampleBeside") // they end with a cancelled call
	}
	return steps
}

// TestPatchbay runs Patchbay with every foreign peer, as the client and as the server,
// in every revision that both speak.
func TestPatchbay(t *testing.T) {
	ours := peer{name: "patchbay", ask: askOurs, serve: goServer("patchbay"), as: withAuto, serves: all}
	pair(t, ours, ours)
	for _, foreign := range peers {
		pair(t, ours, foreign)
		pair(t, foreign, ours)
	}
}

// TestForeign runs the foreign peers with each other, in the newest revision of each
// era. It does not test Patchbay: it shows that a failure of TestPatchbay is not the
// harness's. Their timeouts cannot be changed here, and a busy machine is too slow for
// some, so it runs only when PATCHBAY_FOREIGN is set.
func TestForeign(t *testing.T) {
	if os.Getenv("PATCHBAY_FOREIGN") == "" {
		t.Skip("joins others' software with each other; set PATCHBAY_FOREIGN=1 to run it")
	}
	for _, client := range peers {
		for _, server := range peers {
			if client.name != server.name {
				client.as = intersect(client.as, []string{v2025_11_25, v2026_07_28})
				pair(t, client, server)
			}
		}
	}
}

// pair runs one client against one server on each wire and in each revision
// that both speak.
func pair(t *testing.T, client, server peer) {
	for _, w := range []wire{stdio, web} {
		for _, revision := range client.as {
			settled := revision
			if revision == auto {
				settled = slices.Max(server.serves)
			} else if !slices.Contains(server.serves, revision) {
				continue
			}
			t.Run(client.name+"-"+server.name+"/"+string(w)+"/"+revision, func(t *testing.T) {
				t.Parallel()
				if client.node || server.node {
					node(t)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				to := target{wire: w, revision: revision, skip: gapsOf(client.name, server.name, w, settled)}
				if w == stdio {
					to.command = server.serve(stdio)
				} else {
					to.url = startServer(t, server.serve(web))
				}
				got, err := client.ask(ctx, to)
				if err != nil {
					t.Fatalf("%s client on %s server: %v", client.name, server.name, err)
				}
				want := goodReport(server.name, settled)
				if slices.Contains(to.skip, "cancelled") {
					want.Cancelled, want.AskBeside, want.SampleBeside = false, "", ""
				}
				if slices.Contains(to.skip, "twice") {
					want.Twice = ""
				}
				if (client.name == "patchbay" || server.name == "patchbay") && settled < v2025_06_18 {
					unasked(t, &want, got, to.skip)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s client on %s server, report (-want +got):\n%s", client.name, server.name, diff)
				}
			})
		}
	}
}

// unasked adjusts the expectation for revisions without elicitation: questions must
// fail, though foreign peers still ask them.
func unasked(t *testing.T, want *report, got report, skip []string) {
	t.Helper()
	want.Ask, want.Twice, want.AskBeside = "", "", ""
	for _, tool := range []string{"ask", "twice", "askBeside"} {
		if slices.Contains(skip, tool) {
			continue
		}
		if text, ok := got.Errors[tool]; ok {
			want.Errors[tool] = text
		} else {
			t.Errorf("a question of %q to the user was answered in revision %s", tool, got.Revision)
		}
	}
}

func intersect(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}
