package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// One order holds for up, serve, bridge, run and chat: the policy refuses the first call of a tool,
// and the limit the second, before the policy decides again. The access log of a server has both.
func TestOneOrder(t *testing.T) {
	t.Run("flags", func(t *testing.T) {
		oneOrder(t, func(tool string) []string {
			return []string{"--policy", "rules.yaml", "--limit", "tool:" + tool + "=1/h"}
		}, func(*testing.T) {})
	})
	t.Run("gateway.yaml", func(t *testing.T) {
		flags := func(tool string) []string {
			text := "policy: rules.yaml\nlimits: [\"tool:" + tool + "=1/h\"]\naudit: {file: audit.jsonl}\nrecord: {dir: frames}\n"
			if err := os.WriteFile("gateway.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"--gateway", "gateway.yaml"}
		}
		oneOrder(t, flags, func(t *testing.T) {
			t.Helper()
			var denied []string
			for e, err := range audit.Read("audit.jsonl") {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == audit.Denied {
					denied = append(denied, e.Outcome)
				}
			}
			if len(denied) != 2 {
				t.Errorf("the audit log has the refusals %v, want two", denied)
			}
			if files, _ := filepath.Glob(filepath.Join("frames", "trace-*.jsonl")); len(files) == 0 {
				t.Error("there is no recording")
			}
		})
	})
}

// oneOrder runs each verb with flags for its tool, and calls check at its end.
func oneOrder(t *testing.T, flags func(tool string) []string, check func(t *testing.T)) {
	const stoves = `name == "add-to-cart" && arguments.product == "prd-1013"`
	byPolicy, byLimit := `refused with these arguments by "no stoves"`, "than 1/h from one caller"
	for _, tt := range []struct {
		name, tool string
		args       []string
	}{
		{"serve", "add-to-cart", []string{"serve", "shop"}},
		{"up", "shop_add-to-cart", []string{"up", "--stdio", "-s", "shop"}},
		{"bridge", "add-to-cart", []string{"bridge", "--stdio", "-s", "shop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alone(t)
			runtimeFolder(t)
			writeRules(t, stoves)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, append(append(tt.args, "--log", "access.jsonl"), flags(tt.tool)...)...)
			cmd.Env = append(os.Environ(), testRun+"=patchbay")
			s, err := (&mcp.Client{Name: "host", Version: "1"}).Start(t.Context(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{byPolicy, byLimit} {
				_, err := s.CallTool(t.Context(), tt.tool, map[string]any{"product": "prd-1013"})
				if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), want) {
					t.Errorf("the call has the error %v, want %q", err, want)
				}
			}
			s.Close()
			log, err := os.ReadFile("access.jsonl")
			if got := strings.Count(string(log), `"method":"tools/call"`); err != nil || got != 2 {
				t.Errorf("the access log has %d calls, %v: %s", got, err, log)
			}
			check(t)
		})
	}
	t.Run("run", func(t *testing.T) {
		patchbay := scriptedRun(t, `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: no stoves}}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: `+byLimit+`}}
    answer: [text: Enough.]
`)
		writeRules(t, stoves)
		if got := patchbay("", append([]string{"a stove, please", "--allow", "shop/*", "--yes"}, flags("add-to-cart")...)...); got.code != 0 || !strings.Contains(got.stdout, "Enough.") {
			t.Errorf("%+v", got)
		}
		check(t)
	})
	t.Run("chat", func(t *testing.T) {
		alone(t)
		writeRules(t, stoves)
		const line = "/call shop/add-to-cart product=prd-1013\n"
		got := typed(t, line+line, append([]string{"chat", "-s", "shop", "--no-memory"}, flags("add-to-cart")...)...)
		out := strings.ReplaceAll(got.stdout+got.stderr, `\"`, `"`)
		if first := strings.Index(out, byPolicy); first < 0 || !strings.Contains(out[first:], byLimit) {
			t.Errorf("%+v", got)
		}
		check(t)
	})
}
