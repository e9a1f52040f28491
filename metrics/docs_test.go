package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/metrics"
)

// docs/metrics.md has a row for each metric, as the program writes it.
func TestDocs(t *testing.T) {
	page := read(t, "../docs/metrics.md")
	var rows []string
	for _, m := range metrics.Metrics() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", m.Name, m.Type, m.Unit, labels, m.Help))
	}
	got := regexp.MustCompile("(?m)^\\| `(?:mcp|patchbay|process)_.*$").FindAllString(string(page), -1)
	if !slices.Equal(got, rows) {
		t.Errorf("docs/metrics.md has these rows:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
}

// The dashboard and the alert rules use metrics and labels that exist, and have what Grafana and
// Prometheus require.
func TestDeploy(t *testing.T) {
	var board struct {
		UID, Title    string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ RefID, Expr string }
		}
	}
	raw := read(t, "../deploy/grafana/dashboard.json")
	if err := json.Unmarshal(raw, &board); err != nil || board.UID == "" || board.Title == "" || board.SchemaVersion == 0 {
		t.Fatalf("the dashboard is %+v, %v", board, err)
	}
	ids := map[int]bool{}
	var exprs []string
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "../deploy/prometheus/alerts.yaml"), &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("rule %+v", r)
			}
			exprs = append(exprs, r.Expr)
		}
	}
	if len(exprs) < 15 {
		t.Errorf("only %d expressions", len(exprs))
	}
	known, labels := map[string]bool{}, map[string]bool{"instance": true, "le": true}
	for _, m := range metrics.Metrics() {
		known[m.Name] = m.Type != "histogram"
		for _, l := range m.Labels {
			labels[l] = true
		}
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			known[m.Name+part] = m.Type == "histogram"
		}
	}
	name, by, in := regexp.MustCompile(`\b(?:mcp|patchbay|process)_[a-z_]+`), regexp.MustCompile(`by \(([^)]*)\)`), regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	for _, e := range exprs {
		selectors := in.FindAllStringSubmatch(e, -1)
		for _, group := range by.FindAllStringSubmatch(e, -1) {
			for l := range strings.SplitSeq(group[1], ", ") {
				selectors = append(selectors, []string{"", l})
			}
		}
		for _, l := range selectors {
			if !labels[l[1]] {
				t.Errorf("%s: there is no label %s", e, l[1])
			}
		}
		for _, n := range name.FindAllString(e, -1) {
			if !known[n] && !labels[n] {
				t.Errorf("%s: there is no metric %s", e, n)
			}
		}
		if strings.Count(e, "(") != strings.Count(e, ")") || strings.Count(e, "{") != strings.Count(e, "}") {
			t.Errorf("%s: brackets are open", e)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
