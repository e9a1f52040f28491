package verdict_test

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

func TestVerdict(t *testing.T) {
	set, err := rules.Parse("p.yaml", []byte("rules:\n  - name: small\n    effect: allow\n    when: name == \"refund\" && arguments.amount <= 100\n"))
	if err != nil {
		t.Fatal(err)
	}
	access := &policy.Access{Server: "shop", Kind: mcp.KindTool, Name: "refund", Method: "tools/call"}
	for amount, want := range map[string]string{
		"50":  `by rule "small" (p.yaml:2): tool refund of shop for an anonymous caller`,
		"500": "by default, as no rule matches: tool refund of shop for an anonymous caller",
	} {
		access.Arguments = []byte(`{"amount":` + amount + `}`)
		v := verdict.Of(t.Context(), set, access)
		lines := v.Lines(access, "dir/p.yaml")
		if v.Allowed != (amount == "50") || lines[0] != want || v.Grid() == nil {
			t.Errorf("%s: %+v\n%s", amount, v, strings.Join(lines, "\n"))
		}
	}
}

func TestPrincipal(t *testing.T) {
	p, err := verdict.Principal("https://a.example#ada", nil, nil, []string{"level=3", "team=red"})
	if err != nil || p.Issuer != "https://a.example" || p.Subject != "ada" || p.Claims["team"] != "red" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := verdict.Principal("a", nil, nil, []string{"level"}); err == nil || !strings.Contains(err.Error(), "NAME=VALUE") {
		t.Errorf("claim without a value: %v", err)
	}
}

func TestAnnotations(t *testing.T) {
	n, err := verdict.Annotations([]string{"readOnlyHint", "openWorldHint=false", "title=A", "priority=0.5"})
	if err != nil || !n.ReadOnly || n.OpenWorld || n.Title != "A" {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := verdict.Annotations([]string{"readOnly=true"}); err == nil || !strings.Contains(err.Error(), "readOnlyHint") {
		t.Errorf("unknown annotation: %v", err)
	}
}
