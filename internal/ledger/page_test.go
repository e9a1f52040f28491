package ledger

import (
	"fmt"
	"strings"
)

// An area is a chapter of the rules.
type area struct {
	id, title string
	required  bool // each binding rule needs a test or a reason
}

var areas = []area{
	{"BASE", "Base protocol", true},
	{"JSON", "JSON Schema", true},
	{"META", "Metadata of requests and results", true},
	{"ICON", "Icons", true},
	{"VER", "Versions and eras", true},
	{"DISC", "server/discover", true},
	{"INIT", "initialize (before 2026-07-28)", true},
	{"TRAN", "Transports in general", true},
	{"STDIO", "stdio", true},
	{"HTTP", "Streamable HTTP of 2026-07-28", true},
	{"SHTTP", "Streamable HTTP with sessions (2025-03-26 to 2025-11-25)", true},
	{"SSE", "HTTP with SSE (2024-11-05)", true},
	{"PAT", "Message patterns", true},
	{"MRTR", "Questions within results", true},
	{"SUB", "subscriptions/listen", true},
	{"PROG", "Progress", true},
	{"CANC", "Cancellation", true},
	{"PING", "Ping", true},
	{"CACHE", "Caching", true},
	{"PAGE", "Pagination", true},
	{"LOG", "Logging", true},
	{"COMP", "Completion", true},
	{"TOOL", "Tools", true},
	{"RES", "Resources", true},
	{"PROM", "Prompts", true},
	{"ELIC", "Elicitation", true},
	{"SAMP", "Sampling", true},
	{"ROOT", "Roots", true},
	{"TASK", "Tasks of 2025-11-25", true},
	{"XTASK", "Tasks of 2026-07-28 (extension)", true},
	{"XAPP", "Apps (extension)", true},
	{"GEN", "General principles", false},
	{"AUTH", "Authorization", true},
	{"XAUTH", "Authorization (extensions)", true},
	{"SEC", "Security", true},
}

var titles = func() map[string]area {
	m := map[string]area{}
	for _, a := range areas {
		m[a.id] = a
	}
	return m
}()

// revisions by their letter in rows.tsv.
var revisions = map[rune]string{'A': "2024-11-05", 'B': "2025-03-26", 'C': "2025-06-18", 'D': "2025-11-25", 'E': "2026-07-28"}

// page writes docs/protocol.md.
func page(rows []row, tests map[string][]string, reasons map[string]reason) string {
	var b strings.Builder
	b.WriteString(`# The protocol, rule by rule

Written by ` + "`go test ./internal/ledger -update`" + ` from the tests; do not edit. Each rule of the five revisions of the
specification, restated in a line, with the tests that check it. Revisions: A 2024-11-05, B 2025-03-26, C 2025-06-18,
D 2025-11-25, E 2026-07-28. A rule without a test has a reason instead; **open** means that both are missing.

`)
	summary(&b, rows, tests, reasons)
	departures(&b, rows, reasons)
	for _, a := range areas {
		if !a.required && !touched(rows, tests, a.id) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s: %s\n\n| Rule | Rev | Side | Level | What | Checked by |\n|---|---|---|---|---|---|\n", a.id, a.title)
		for _, r := range rows {
			if r.area() == a.id {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.id, r.revs, r.side, r.level, r.rule, checkedBy(&r, a, tests, reasons))
			}
		}
	}
	return b.String()
}

func touched(rows []row, tests map[string][]string, area string) bool {
	for _, r := range rows {
		if r.area() == area && len(tests[r.id]) > 0 {
			return true
		}
	}
	return false
}

func checkedBy(r *row, a area, tests map[string][]string, reasons map[string]reason) string {
	var parts []string
	for i, name := range tests[r.id] {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("and %d more", len(tests[r.id])-i))
			break
		}
		parts = append(parts, "`"+name+"`")
	}
	if why, ok := reasons[r.id]; ok {
		parts = append(parts, why.kind+": "+why.text)
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case r.binding() && a.required:
		return "**open**"
	}
	return ""
}

// summary counts the binding rules of each revision.
func summary(b *strings.Builder, rows []row, tests map[string][]string, reasons map[string]reason) {
	b.WriteString("| Revision | Binding rules | with a test | with a reason | open | Advice with a test |\n|---|---|---|---|---|---|\n")
	for _, letter := range "ABCDE" {
		var must, tested, stated, advice, advised int
		for _, r := range rows {
			if !titles[r.area()].required || !strings.ContainsRune(r.revs, letter) {
				continue
			}
			_, why := reasons[r.id]
			has := len(tests[r.id]) > 0
			switch {
			case !r.binding():
				advice++
				if has {
					advised++
				}
			case has:
				must, tested = must+1, tested+1
			case why:
				must, stated = must+1, stated+1
			default:
				must++
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d of %d |\n", revisions[letter], must, tested, stated, must-tested-stated, advised, advice)
	}
	b.WriteString("\nThe general principles (GEN), which are not binding, are not counted.\n")
}

// departures lists the advice that is deliberately not followed.
func departures(b *strings.Builder, rows []row, reasons map[string]reason) {
	b.WriteString("\n## Advice that Patchbay does not follow\n\n")
	n := 0
	for _, r := range rows {
		if why, ok := reasons[r.id]; ok && why.kind == "departed" {
			fmt.Fprintf(b, "* %s (%s, \"%s\"): %s\n", r.id, r.level, strings.TrimSuffix(r.rule, "."), why.text)
			n++
		}
	}
	if n == 0 {
		b.WriteString("None.\n")
	}
}
