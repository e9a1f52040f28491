package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Prometheus' own parser reads each expression of the alert rules and of the dashboard. Each metric in them is one that
// /metrics writes, with the labels that it has there.
func TestDeployParses(t *testing.T) {
	series := seriesOf(t, scraped(t))
	var rules struct {
		Groups []struct {
			Name     string         `yaml:"name"`
			Interval model.Duration `yaml:"interval"`
			Rules    []struct {
				Alert         string            `yaml:"alert"`
				Expr          string            `yaml:"expr"`
				For           model.Duration    `yaml:"for"`
				KeepFiringFor model.Duration    `yaml:"keep_firing_for"`
				Labels        map[string]string `yaml:"labels"`
				Annotations   map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	d := yaml.NewDecoder(bytes.NewReader(deployed(t, "prometheus/alerts.yaml")))
	d.KnownFields(true) // Prometheus refuses a file with others
	if err := d.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	n := 0
	names := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if err := series.check(r.Expr); err != nil {
				t.Errorf("rule %s: %v", r.Alert, err)
			}
			for name := range r.Labels {
				if !model.LegacyValidation.IsValidLabelName(name) {
					t.Errorf("rule %s: label %q", r.Alert, name)
				}
			}
			if !model.LegacyValidation.IsValidMetricName(r.Alert) || names[r.Alert] {
				t.Errorf("rule %q: its name is not valid, or not its own", r.Alert)
			}
			names[r.Alert] = true
			n++
		}
	}

	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(deployed(t, "grafana/dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if err := series.check(interval.ReplaceAllString(target.Expr, "[5m]")); err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			n++
		}
	}
	for _, v := range board.Templating.List {
		if v.Type != "query" {
			continue
		}
		var query struct{ Query string }
		if err := json.Unmarshal(v.Query, &query); err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(query.Query)
		if found == nil {
			t.Errorf("variable %s: the query %q is unknown to this test", v.Name, query.Query)
			continue
		}
		if err := series.check(fmt.Sprintf("sum by (%s) (%s)", found[2], found[1])); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
		n++
	}
	if n < 20 {
		t.Errorf("only %d expressions", n)
	}

	for expr, want := range map[string]string{
		"sum(rate(patchbay_call_errors_total[5m])":                                "unclosed left parenthesis",
		"rate(patchbay_call_errors_total)":                                        "expected type range vector",
		"patchbay_call_errors":                                                    "/metrics has no patchbay_call_errors",
		"patchbay_call_duration_seconds":                                          "/metrics has no patchbay_call_duration_seconds",
		`patchbay_build_info{team="dev"}`:                                         "has no label team",
		"sum by (tool) (patchbay_call_errors_total)":                              "has no label tool",
		"histogram_quantile(0.9, sum by (le) (patchbay_call_errors_total))":       "has no label le",
		"patchbay_build_info * on (instance, replica) patchbay_upstream_restarts": "has no label replica",
	} {
		if err := series.check(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", expr, err, want)
		}
	}
}

// interval matches the variables that Grafana replaces by a duration.
var interval = regexp.MustCompile(`\[\$__(rate_interval|interval|range)\]`)

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// seriesLabels are the labels of each series that Prometheus has of /metrics, with those that it adds.
type seriesLabels map[string][]string

func seriesOf(t *testing.T, families map[string]*dto.MetricFamily) seriesLabels {
	t.Helper()
	out := seriesLabels{}
	for name, f := range families {
		own := []string{"instance", "job"}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				own = append(own, l.GetName())
			}
		}
		if f.GetType() != dto.MetricType_HISTOGRAM {
			out[name] = own
			continue
		}
		out[name+"_count"], out[name+"_sum"], out[name+"_bucket"] = own, own, append(slices.Clip(own), "le")
	}
	if len(out) < 20 {
		t.Fatalf("/metrics has only %d series", len(out))
	}
	return out
}

// check returns why Prometheus would refuse an expression, or find nothing with it.
func (s seriesLabels) check(expr string) error {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return fmt.Errorf("%s: %w", expr, err)
	}
	var wrong []string
	has := func(in parser.Node, names []string) {
		parser.Inspect(in, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			own, known := s[v.Name]
			if !known {
				wrong = append(wrong, "/metrics has no "+v.Name)
				return nil
			}
			for _, name := range names {
				if !slices.Contains(own, name) {
					wrong = append(wrong, fmt.Sprintf("%s has no label %s", v.Name, name))
				}
			}
			return nil
		})
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			var names []string
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					names = append(names, m.Name)
				}
			}
			has(n, names)
		case *parser.AggregateExpr:
			has(n.Expr, n.Grouping)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				has(n, n.VectorMatching.MatchingLabels)
			}
		case *parser.Call:
			if n.Func.Name == "histogram_quantile" {
				has(n.Args[1], []string{"le"})
			}
		}
		return nil
	})
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %s", expr, wrong[0])
	}
	return nil
}
