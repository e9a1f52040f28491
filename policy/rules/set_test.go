package rules_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// shop is a policy with every feature of rules.
const shop = `
# Who may do what in the shop.
default: deny
rules:
  - name: look
    when: kind == "tool" && annotations.readOnlyHint
    effect: allow
  - name: refunds need a scope
    when: server == "shop" && name == "refund" && !("shop:refund" in principal.scopes)
    effect: deny
    scopes: [shop:refund]
  - name: small refunds
    when: server == "shop" && name == "refund" && arguments.amount <= 100
    effect: allow
  - name: large refunds
    when: name == "refund" && "boss" in principal.roles
    effect: allow
  - name: no large refunds
    when: name == "refund"
    effect: deny
    reason: over 100 only the boss refunds
  - name: public files
    when: kind == "resource" && name.startsWith("file:///public/")
    effect: allow
  - name: broken
    when: name == "broken" && arguments.missing == 1
    effect: allow
  - name: tenants
    when: name == "tenant" && principal.claims["tenant"] == arguments.tenant && client.name == "good"
    effect: allow
  - name: tasks are cancelled by nobody
    when: method == "tasks/cancel"
    effect: deny
  - name: extensions
    when: kind == "method" && name == "skills/list"
    effect: allow
`

func parse(t testing.TB, text string) *rules.Set {
	t.Helper()
	s, err := rules.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var readOnly = func() *policy.Annotations { return &policy.Annotations{ReadOnly: true} }

func TestDecide(t *testing.T) {
	s := parse(t, shop)
	clerk := &auth.Principal{ID: "as#clerk", Scopes: []string{"shop:refund"}, Claims: map[string]any{"tenant": "blue"}}
	boss := &auth.Principal{ID: "as#boss", Scopes: []string{"shop:refund"}, Roles: []string{"boss"}}
	tool := func(p *auth.Principal, name, args string) policy.Access {
		return policy.Access{Principal: p, Server: "shop", Method: "tools/call", Kind: mcp.KindTool, Name: name, Arguments: []byte(args)}
	}
	listed := func(a policy.Access) policy.Access { a.Partial, a.Arguments = true, nil; return a }
	annotated := func(a policy.Access) policy.Access { a.Annotations = readOnly; return a }
	good := tool(clerk, "tenant", `{"tenant":"blue"}`)
	good.Client = func() mcp.Implementation { return mcp.Implementation{Name: "good"} }
	claimless := good
	claimless.Principal = boss
	tests := []struct {
		name string
		a    policy.Access
		want policy.Decision
	}{
		{"annotations", annotated(tool(nil, "list", "")), policy.Decision{Allow: true, Rule: "look"}},
		{"no annotations are the worst", tool(boss, "list", ""), policy.Decision{Rule: "default"}},
		{"nobody lacks the scope", tool(nil, "refund", `{"amount":1}`), policy.Decision{Rule: "refunds need a scope", Scopes: []string{"shop:refund"}}},
		{"also in a list", listed(tool(nil, "refund", "")), policy.Decision{Rule: "refunds need a scope", Scopes: []string{"shop:refund"}}},
		{"int", tool(clerk, "refund", `{"amount":100}`), policy.Decision{Allow: true, Rule: "small refunds"}},
		{"double", tool(clerk, "refund", `{"amount":99.5}`), policy.Decision{Allow: true, Rule: "small refunds"}},
		{"more than 64 bits", tool(clerk, "refund", `{"amount":36893488147419103232}`), policy.Decision{Rule: "no large refunds", Reason: "over 100 only the boss refunds"}},
		{"the argument decides", tool(clerk, "refund", `{"amount":101}`), policy.Decision{Rule: "no large refunds", Reason: "over 100 only the boss refunds"}},
		{"roles", tool(boss, "refund", `{"amount":101}`), policy.Decision{Allow: true, Rule: "large refunds"}},
		{"arguments are not known", listed(tool(clerk, "refund", "")), policy.Decision{Allow: true, Rule: "small refunds"}},
		{"a resource", policy.Access{Kind: mcp.KindResource, Name: "file:///public/a", Method: "resources/read"}, policy.Decision{Allow: true, Rule: "public files"}},
		{"another", policy.Access{Kind: mcp.KindResource, Name: "file:///etc", Method: "resources/read"}, policy.Decision{Rule: "default"}},
		{"a template may stand for it", policy.Access{Kind: mcp.KindResource, Template: "file:///{p}", Partial: true}, policy.Decision{Allow: true, Rule: "public files"}},
		{"a task of some tool", policy.Access{Kind: mcp.KindTool, Partial: true, Method: "tasks/get"}, policy.Decision{Allow: true, Rule: "look"}},
		{"an argument that is not there", tool(clerk, "refund", `{}`), policy.Decision{Rule: "small refunds", Err: cmpopts.AnyError}},
		{"an argument of another type", tool(clerk, "refund", `{"amount":"1"}`), policy.Decision{Rule: "small refunds", Err: cmpopts.AnyError}},
		{"arguments that are no object", tool(clerk, "refund", `[1]`), policy.Decision{Rule: "small refunds", Err: cmpopts.AnyError}},
		{"arguments that are no JSON", tool(clerk, "refund", `{"amount":1,}`), policy.Decision{Rule: "small refunds", Err: cmpopts.AnyError}},
		{"an argument twice", tool(clerk, "refund", `{"amount":1000,"amount":1}`), policy.Decision{Rule: "small refunds", Err: cmpopts.AnyError}},
		{"null", tool(clerk, "broken", `{"missing":null}`), policy.Decision{Rule: "default"}},
		{"claims and client", good, policy.Decision{Allow: true, Rule: "tenants"}},
		{"a claim that is not there", claimless, policy.Decision{Rule: "tenants", Err: cmpopts.AnyError}},
		{"a client without a name", tool(clerk, "tenant", `{"tenant":"blue"}`), policy.Decision{Rule: "default"}},
		{"a method of an extension", policy.Access{Name: "skills/list", Method: "skills/list"}, policy.Decision{Allow: true, Rule: "extensions"}},
		{"another method", policy.Access{Name: "skills/get", Method: "skills/get"}, policy.Decision{Rule: "default"}},
		{"too much", tool(clerk, "refund", `{"amount":"`+strings.Repeat("x", 16<<20)+`"}`), policy.Decision{Rule: "default", Err: cmpopts.AnyError}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := s.Decide(t.Context(), &tt.a)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("Decide(%.60s): %s", tt.a.Name, diff)
			}
			// Explain says the same.
			if diff := cmp.Diff(tt.want, s.Explain(t.Context(), &tt.a).Decision, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("Explain(%.60s): %s", tt.a.Name, diff)
			}
		})
	}
}

// A refusal in a list is certain: the call is then refused for all arguments. For a listed
// feature some arguments are allowed, or might be.
func TestPartialRefusesOnlyWhatIsRefused(t *testing.T) {
	conditions := []string{
		"true", "false", `name == "a"`, `arguments.x == 1`, `has(arguments.x)`, `arguments.x == 1 && name == "a"`,
		`arguments.x == 1 || name == "b"`, `!(has(arguments.x))`, `size(arguments) == 0`, `arguments.exists(k, k == "x")`,
		`annotations.readOnlyHint && arguments.x > 0`, `name == "a" ? arguments.x == 1 : false`, `arguments.y`,
	}
	calls := []string{`{}`, `{"x":1}`, `{"x":2}`, `{"y":true}`, `{"x":1,"y":false}`}
	n := 0
	for i, c1 := range conditions {
		for j, c2 := range conditions {
			for _, effects := range [][2]string{{"allow", "deny"}, {"deny", "allow"}} {
				s := parse(t, fmt.Sprintf("rules:\n- {name: one, when: %q, effect: %s}\n- {name: two, when: %q, effect: %s}\n", c1, effects[0], c2, effects[1]))
				for _, name := range []string{"a", "b"} {
					a := policy.Access{Kind: mcp.KindTool, Name: name, Partial: true}
					if s.Decide(t.Context(), &a).Allow {
						continue
					}
					for _, args := range calls {
						n++
						a := policy.Access{Kind: mcp.KindTool, Name: name, Arguments: []byte(args)}
						if d := s.Decide(t.Context(), &a); d.Allow {
							t.Errorf("rules %d %d %v: %q is in no list, and %s is allowed by %q", i, j, effects, name, args, d.Rule)
						}
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("nothing was refused")
	}
}

// The cost of a condition is bounded for all arguments.
func TestCostIsBounded(t *testing.T) {
	s := parse(t, `rules: [{name: pairs, effect: allow, when: 'arguments.a.all(x, arguments.a.all(y, x + y != "q"))'}]`)
	a := policy.Access{Kind: mcp.KindTool, Name: "t", Arguments: []byte(`{"a":["x"` + strings.Repeat(`,"y"`, 100_000) + `]}`)}
	if d := s.Decide(t.Context(), &a); d.Allow || d.Err == nil || !strings.Contains(d.Err.Error(), "cost") {
		t.Errorf("10,000,000,000 comparisons: %+v, want a refusal because of the cost", d)
	}
	a.Arguments = []byte(`{"a":["x","y"]}`)
	if d := s.Decide(t.Context(), &a); !d.Allow {
		t.Errorf("4 comparisons: %+v", d)
	}
}

// A value that no condition uses is not requested.
func TestNothingIsReadInVain(t *testing.T) {
	s := parse(t, `rules: [{name: a, effect: allow, when: 'name == "a" || annotations.readOnlyHint'}]`)
	asked := 0
	a := policy.Access{Kind: mcp.KindTool, Name: "a", Arguments: []byte(`{`), Annotations: func() *policy.Annotations { asked++; return nil }}
	if d := s.Decide(t.Context(), &a); !d.Allow || asked != 0 {
		t.Errorf("%+v after asking %d times, want it allowed without", d, asked)
	}
	a.Name = "b"
	if d := s.Decide(t.Context(), &a); d.Allow || asked != 1 {
		t.Errorf("%+v after asking %d times, want it refused after one", d, asked)
	}
}

func TestExplain(t *testing.T) {
	s := parse(t, shop)
	a := policy.Access{Server: "shop", Kind: mcp.KindTool, Name: "refund", Principal: &auth.Principal{ID: "c", Scopes: []string{"shop:refund"}}, Arguments: []byte(`{"amount":500}`)}
	got := s.Explain(t.Context(), &a)
	i := slices.IndexFunc(got.Tried, func(t rules.Tried) bool { return t.Rule == "small refunds" })
	if i != 2 || len(got.Tried) != 5 || got.Tried[4].Rule != got.Decision.Rule || got.Tried[4].Outcome != "yes" {
		t.Fatalf("tried %+v", got.Tried)
	}
	want := rules.Tried{
		Rule: "small refunds", Line: 12, When: `server == "shop" && name == "refund" && arguments.amount <= 100`, Effect: "allow", Outcome: "no",
		Values: []rules.Value{{Of: "server", Value: `"shop"`}, {Of: "name", Value: `"refund"`}, {Of: "arguments.amount", Value: "500"}},
	}
	if diff := cmp.Diff(want, got.Tried[i]); diff != "" {
		t.Error(diff)
	}
	a.Partial = true
	got = s.Explain(t.Context(), &a)
	if last := got.Tried[2]; last.Outcome != "perhaps" || last.Values[2] != (rules.Value{Of: "arguments.amount", Value: "not known"}) {
		t.Errorf("in a list: %+v", last)
	}
}

// Rules after the one that decided are in an explanation if they match too.
func TestExplainShadowed(t *testing.T) {
	s := parse(t, "rules:\n- {name: all, when: 'true', effect: allow}\n- {name: no b, when: 'name == \"b\"', effect: deny}\n- {name: no a, when: 'name == \"a\"', effect: deny}\n")
	got := s.Explain(t.Context(), &policy.Access{Kind: mcp.KindTool, Name: "a"})
	var tried []string
	for _, t := range got.Tried {
		tried = append(tried, t.Rule+" "+t.Outcome)
	}
	if want := []string{"all yes", "no a shadowed"}; got.Decision.Rule != "all" || !slices.Equal(tried, want) {
		t.Errorf("%q decides, tried %q, want %q", got.Decision.Rule, tried, want)
	}
}

func BenchmarkDecide(b *testing.B) {
	s := parse(b, shop)
	a := policy.Access{Server: "shop", Kind: mcp.KindTool, Name: "refund", Principal: &auth.Principal{ID: "x", Scopes: []string{"shop:refund"}}, Arguments: []byte(`{"amount":50}`)}
	for _, partial := range []bool{false, true} {
		b.Run(fmt.Sprintf("partial=%v", partial), func(b *testing.B) {
			a.Partial = partial
			b.ReportAllocs()
			for b.Loop() {
				if !s.Decide(context.Background(), &a).Allow {
					b.Fatal("refused")
				}
			}
		})
	}
}
