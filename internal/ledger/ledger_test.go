package ledger

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/protocol.md and testdata/open.txt")

const root = "../.."

// A row is one rule of the specification.
type row struct {
	id, revs, side, level, rule, source string
}

func (r *row) area() string  { area, _, _ := strings.Cut(r.id, "-"); return area }
func (r *row) binding() bool { return strings.HasPrefix(r.level, "MUST") }

// A reason says why a rule does not have a test.
type reason struct{ kind, text string }

// kinds are the kinds of reasons, with their meanings.
var kinds = map[string]string{
	"host":     "a duty of the application around the SDK",
	"type":     "the types make a violation impossible to write",
	"review":   "cannot be tested; checked by reading",
	"others":   "binds other software: authorization servers and identity providers",
	"later":    "belongs to a part of Patchbay that is not built yet",
	"departed": "deliberately not followed",
}

func TestEveryRuleHasATestOrAReason(t *testing.T) {
	rows := readRows(t)
	reasons := readReasons(t)
	tests := cited(t)

	known := map[string]*row{}
	for i := range rows {
		known[rows[i].id] = &rows[i]
	}
	for id, names := range tests {
		if known[id] == nil {
			t.Errorf("%s cites %s, which is not a rule of testdata/rows.tsv", names[0], id)
		}
	}
	for id, why := range reasons {
		switch r := known[id]; {
		case r == nil:
			t.Errorf("testdata/reasons.tsv: %s is not a rule of testdata/rows.tsv", id)
		case kinds[why.kind] == "":
			t.Errorf("testdata/reasons.tsv: %s: unknown kind of reason %q; the kinds are %q", id, why.kind, slices.Sorted(maps.Keys(kinds)))
		case r.binding() && why.kind == "departed":
			t.Errorf("testdata/reasons.tsv: %s is a %s: it has to be followed", id, r.level)
		case len(tests[id]) > 0 && why.kind != "departed":
			t.Errorf("testdata/reasons.tsv: %s has a test (%s), so it needs no reason", id, tests[id][0])
		}
	}

	var open []string
	for _, r := range rows {
		if _, stated := reasons[r.id]; r.binding() && titles[r.area()].required && !stated && len(tests[r.id]) == 0 {
			open = append(open, r.id)
		}
	}
	if *update {
		write(t, "testdata/open.txt", strings.Join(open, "\n")+"\n")
		write(t, filepath.Join(root, "docs/protocol.md"), page(rows, tests, reasons))
		return
	}
	listed := strings.Fields(read(t, "testdata/open.txt"))
	for _, id := range open {
		if !slices.Contains(listed, id) {
			t.Errorf("%s has no test and no reason: %s", id, known[id].rule)
		}
	}
	for _, id := range listed {
		if !slices.Contains(open, id) {
			t.Errorf("%s is listed as open and is not; run go test ./internal/ledger -update", id)
		}
	}
	if got := read(t, filepath.Join(root, "docs/protocol.md")); got != page(rows, tests, reasons) {
		t.Error("docs/protocol.md is not what the tests say; run go test ./internal/ledger -update")
	}
}

// One citation can name several rules.
func TestCitations(t *testing.T) {
	for text, want := range map[string][]string{
		"TOOL-26-003: a name":               {"TOOL-26-003"},
		"TOOL-26-003 to -005":               {"TOOL-26-003", "TOOL-26-004", "TOOL-26-005"},
		"TOOL-26-003, -007 and PING-25-001": {"TOOL-26-003", "TOOL-26-007", "PING-25-001"},
		"(SSE-24-001, -002, and -004)":      {"SSE-24-001", "SSE-24-002", "SSE-24-004"},
		"SHTTP-2503-010":                    {"SHTTP-2503-010"},
		"T-50, X-1, TOOL-26, RFC-2119":      nil,
		"TOOL-26-003 has 1 to -5 of them":   {"TOOL-26-003"},
	} {
		if got := ids(text); !slices.Equal(got, want) {
			t.Errorf("ids(%q) = %q, want %q", text, got, want)
		}
	}
}

func readRows(t *testing.T) []row {
	var rows []row
	for n, f := range fields(t, "testdata/rows.tsv", 6) {
		rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5]})
		if r := rows[len(rows)-1]; titles[r.area()].title == "" || !slices.Equal(ids(r.id), []string{r.id}) {
			t.Fatalf("testdata/rows.tsv: row %d: bad id %q", n, r.id)
		}
	}
	return rows
}

func readReasons(t *testing.T) map[string]reason {
	reasons := map[string]reason{}
	for _, f := range fields(t, "testdata/reasons.tsv", 3) {
		for _, id := range ids(f[0]) {
			if _, twice := reasons[id]; twice {
				t.Errorf("testdata/reasons.tsv: %s is there twice", id)
			}
			reasons[id] = reason{f[1], f[2]}
		}
	}
	return reasons
}

// fields returns the lines of a file of n columns, without comments.
func fields(t *testing.T, name string, n int) [][]string {
	var out [][]string
	for i, line := range strings.Split(strings.TrimSpace(read(t, name)), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != n {
			t.Fatalf("%s:%d: %d columns, want %d", name, i+1, len(f), n)
		}
		out = append(out, f)
	}
	return out
}

var citation = regexp.MustCompile(`\b([A-Z]+-(?:26|25|2506|2503|24)-)(\d{3})\b((?:(?:,? and |, | to )-\d{3}\b)*)`)
var follower = regexp.MustCompile(`( to )?-(\d{3})`)

// ids returns the ids of the rules in a text.
func ids(text string) []string {
	var out []string
	for _, m := range citation.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+m[2])
		last := number(m[2])
		for _, f := range follower.FindAllStringSubmatch(m[3], -1) {
			n := number(f[2])
			first := n
			if f[1] != "" {
				first = last + 1
			}
			for i := first; i <= n; i++ {
				out = append(out, fmt.Sprintf("%s%03d", m[1], i))
			}
			last = n
		}
	}
	return out
}

func number(s string) (n int) {
	fmt.Sscan(strings.TrimLeft(s, "0"), &n)
	return n
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
