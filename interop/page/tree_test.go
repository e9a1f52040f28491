package page

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

var update = flag.Bool("update", false, "write testdata/tree")

// told are the roles that a screen reader tells; others only group, or are texts of elements that have them as a name.
var told = regexp.MustCompile(`^(banner|main|navigation|region|form|dialog|heading|link|button|switch|checkbox|combobox|textbox|searchbox|listbox|option|tab|tablist|tabpanel|table|grid|columnheader|group|list|status|alert|log|image|figure|progressbar|DisclosureTriangle)$`)

var digits = regexp.MustCompile(`\d+(\.\d+)?`)

// tree returns the page as a screen reader has it: roles and names, a line each, with # for numbers.
func tree(t *testing.T, p *browser.Person) string {
	t.Helper()
	var all accessibility.GetFullAXTreeResult
	p.Do(func(ctx context.Context, c *chromedp.Target) (_ chromedp.Void, err error) {
		all, err = cdp.Call(ctx, c, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		return chromedp.Void{}, err
	})
	text := func(v *accessibility.Value) (s string) {
		if v != nil {
			_ = json.Unmarshal(v.Value, &s) // other than text: empty
		}
		return s
	}
	nodes := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range all.Nodes {
		nodes[n.NodeID] = n
	}
	var b strings.Builder
	var write func(n *accessibility.Node, depth int)
	write = func(n *accessibility.Node, depth int) {
		if n == nil {
			return
		}
		if role := text(n.Role); !n.Ignored && told.MatchString(role) {
			line := strings.Repeat("  ", depth) + role
			if name := text(n.Name); name != "" {
				line += " " + digits.ReplaceAllString(name, "#")
			}
			b.WriteString(line + "\n")
			depth++
		}
		for _, id := range n.ChildIDs {
			write(nodes[id], depth)
		}
	}
	if len(all.Nodes) > 0 {
		write(all.Nodes[0], 0)
	}
	return b.String()
}

// TestTrees compares the accessibility tree of each screen, which a screen reader reads, with the reviewed one in
// testdata/tree. After a change on purpose, go test ./page -run 'TestTrees|TestLogin' -update writes them.
func TestTrees(t *testing.T) {
	args := []string{"up", "--http", "127.0.0.1:0", "--gateway", gatewayFile(t), "-s", "everything", "-s", "shop"}
	p, origin := opened(t, args...)
	p.Looks(1440, 900, false)
	for _, tt := range []struct{ file, path, until string }{
		{"servers", "/", `!!document.querySelector("main details")`},
		{"tool", "/s/everything/tools/echo", `document.querySelectorAll("main li a").length > 10 && document.activeElement.matches("textarea")`},
		{"templates", "/s/everything/templates", `document.querySelectorAll("main li a").length > 0`},
		{"prompt", "/s/everything/prompts/test_prompt_with_arguments", `document.querySelectorAll("main li a").length > 0 && document.activeElement.matches("input[role=combobox]")`},
		{"apps", "/apps/everything/roll_dice", `document.querySelectorAll("main li a").length === 2 && document.activeElement.matches("input")`},
		{"tasks", "/tasks", `true`},
		{"charts", "/charts", `document.querySelectorAll("main .shares li").length > 20 && document.querySelectorAll("main figure").length === 3`},
		{"inbox", "/inbox", `true`},
		{"policy", "/policy", `true`},
		{"audit", "/audit?outcome=denied", `document.body.innerText.includes("No line matches.")`},
		{"recordings", "/recordings", `!!document.querySelector("form textarea")`},
		{"help", "/help", `true`},
	} {
		t.Run(tt.file, func(t *testing.T) {
			p.GoTo(origin + tt.path)
			p.Until(`!!document.querySelector("[data-ready]") && (` + tt.until + `)`)
			golden(t, p, tt.file)
		})
	}
}

// golden compares the page as it is with testdata/tree/FILE.txt.
func golden(t *testing.T, p *browser.Person, file string) {
	t.Helper()
	got := tree(t, p)
	path := filepath.Join("testdata", "tree", file+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("the screen differs from %s (- before, + now):\n%s", path, diff)
	}
}
