package docs_test

import (
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

var update = flag.Bool("update", false, "write the drawings in images")

// The drawings in images are made of the tables below. -update writes them.
func TestDrawings(t *testing.T) {
	for name, draw := range map[string]func(t *testing.T) string{"gateway": drawGateway, "revisions": drawRevisions} {
		file, got := "images/"+name+".svg", draw(t)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ReplaceAll(string(want), "\r\n", "\n") != got {
			t.Errorf("%s is not what the tables say: run go test ./docs -run TestDrawings -update and look at it", file)
		}
	}
}

type captioned struct{ name, caption string }

func drawGateway(*testing.T) string {
	var (
		clients = []captioned{{"Claude Code", "HTTP"}, {"VS Code", "HTTP"}, {"your program", "HTTP"}, {"Claude Desktop", "its own up --stdio"}}
		parts   = []captioned{{"Callers", "keys, tokens, logins"}, {"Their calls", "policy, limits, views"}, {"Servers", "start, connections, breakers, caches"}}
		servers = []captioned{{"db", "a command"}, {"jira", "a URL"}, {"shop", "built in"}, {"an HTTP API", "its OpenAPI document"}}
		outputs = []string{"audit log", "access log", "/metrics", "spans", "the page"}
	)
	const (
		width, centre, core = 720, 360, 220
		coreWide            = width - 2*core
		left, side          = 12, 156 // the boxes of clients; those of servers end as far from the other edge
		top, row, high      = 42, 62, 48
	)
	bottom := top + row*max(len(clients), len(servers)) - (row - high)
	d := drawing{}
	d.text("quiet", left+side/2, 26, "clients, any revision")
	d.text("quiet", centre, 26, "one process: patchbay up")
	d.text("quiet", width-left-side/2, 26, "servers, any revision")
	d.rect("core", core, top, coreWide, bottom-top)
	for i, c := range clients {
		y := top + row*i
		d.box(c, left, y, side, high)
		d.link(left+side+2, core-2, y+high/2)
	}
	for i, c := range servers {
		y := top + row*i
		d.box(c, width-left-side, y, side, high)
		d.link(width-core+2, width-left-side-2, y+high/2)
	}
	for i, c := range parts {
		d.box(c, core+14, top+14+60*i, coreWide-28, high)
	}
	d.text("quiet", centre, bottom-26, "follows mcp.json, policy.yaml, keys, …")
	for i, name := range outputs {
		x := centre + 80*i - 40*(len(outputs)-1)
		d.arrow(min(max(x, core+20), width-core-20), bottom+2, x, bottom+36)
		d.text("quiet", x, bottom+54, name)
	}
	return d.svg(width, bottom+70, "The gateway: clients on the left and servers on the right, with patchbay up between them; below it the audit log, the access log, metrics, spans and the page")
}

// brought has three lines for each revision.
var brought = map[mcp.Revision][]string{
	mcp.V2024_11_05: {"tools, resources,", "prompts, sampling", "HTTP+SSE"},
	mcp.V2025_03_26: {"Streamable HTTP", "OAuth, audio", "tool annotations"},
	mcp.V2025_06_18: {"questions to users", "structured results", "resource links"},
	mcp.V2025_11_25: {"tasks, icons", "questions by a page", "tools in sampling"},
	mcp.V2026_07_28: {"requests on their own", "answers in rounds", "extensions"},
}

func drawRevisions(t *testing.T) string {
	const first, step, line = 74, 136, 66
	revisions := mcp.Revisions()
	modern := slices.IndexFunc(revisions, func(r mcp.Revision) bool { return !r.Sessions() })
	at := func(i int) int {
		x := first + step*i
		if i >= modern {
			x += 16
		}
		return x
	}
	last := len(revisions) - 1
	width := at(last) + 86
	d := drawing{}
	d.arrow(30, line, width-18, line)
	for i, r := range revisions {
		if len(brought[r]) != 3 {
			t.Errorf("revision %s brought %q, want three lines", r, brought[r])
		}
		fmt.Fprintf(&d, "<circle class=\"dot\" cx=\"%d\" cy=\"%d\" r=\"7\"/>\n", at(i), line)
		d.text("name", at(i), line-24, string(r))
		for n, text := range brought[r] {
			d.text("quiet", at(i), line+30+19*n, text)
		}
	}
	era := func(from, to int, text string) {
		fmt.Fprintf(&d, "<path class=\"way\" d=\"M%d %dv-8H%dv8\"/>\n", from-66, line+104, to+66)
		d.text("text", (from+to)/2, line+126, text)
	}
	era(at(0), at(modern-1), "a session: initialize, then its requests")
	era(at(modern), at(last), "no session")
	d.text("quiet", width/2, line+156, "Patchbay speaks all of them on both sides, at one address, and translates between them.")
	return d.svg(width, line+174, fmt.Sprintf("The revisions of MCP on a line, from %s to %s, with what each one brought; those before %s open a session, the others do not", revisions[0], revisions[last], revisions[modern]))
}

// drawing has the elements of an SVG. Lengths are pixels, and texts stand centred above y.
type drawing struct{ strings.Builder }

func (d *drawing) text(class string, x, y int, text string) {
	fmt.Fprintf(d, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

func (d *drawing) rect(class string, x, y, width, height int) {
	fmt.Fprintf(d, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class, x, y, width, height)
}

func (d *drawing) box(c captioned, x, y, width, height int) {
	d.rect("box", x, y, width, height)
	d.text("name", x+width/2, y+20, c.name)
	d.text("quiet", x+width/2, y+38, c.caption)
}

func (d *drawing) arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(d, "<path class=\"way\" d=\"M%d %dL%d %d\"/>\n", x1, y1, x2, y2)
	d.tip(x2, y2, math.Atan2(float64(y2-y1), float64(x2-x1)))
}

// link draws an arrow with two tips.
func (d *drawing) link(x1, x2, y int) {
	d.arrow(x1, y, x2, y)
	d.tip(x1, y, math.Pi)
}

func (d *drawing) tip(x, y int, angle float64) {
	fmt.Fprintf(d, "<path class=\"tip\" d=\"M0 0L-9 4.5V-4.5z\" transform=\"translate(%d %d) rotate(%.0f)\"/>\n", x, y, angle*180/math.Pi)
}

// svg returns the drawing, in the colours of light and dark pages, with a description for people who do not see it.
func (d *drawing) svg(width, height int, label string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s">
<style>
  svg { --back: #ffffff; --panel: #f4f5f7; --line: #8a939d; --text: #1c2024; --quiet: #555d66; --mark: #0b57a8 }
  @media (prefers-color-scheme: dark) { svg { --back: #14171a; --panel: #23282e; --line: #7d8790; --text: #e6e8eb; --quiet: #a5adb7; --mark: #7cb8f5 } }
  text { font: 14px system-ui, sans-serif; fill: var(--text); text-anchor: middle }
  .quiet { fill: var(--quiet); font-size: 12.5px }
  .name { font-weight: 600 }
  .box { fill: var(--panel); stroke: var(--line) }
  .core { fill: none; stroke: var(--mark); stroke-width: 2 }
  .way { fill: none; stroke: var(--line); stroke-width: 1.5 }
  .tip { fill: var(--line) }
  .dot { fill: var(--mark) }
</style>
<rect width="100%%" height="100%%" rx="6" fill="var(--back)"/>
%[4]s</svg>
`, width, height, html.EscapeString(label), d.String())
}
