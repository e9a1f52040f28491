package explain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// A running gateway explains a call by the rules in use, with the hints of trusted servers alone, and says what comes of
// the call for the callers that it knows.
func TestLive(t *testing.T) {
	set, err := rules.Parse("p.yaml", []byte(`default: deny
rules:
  - name: everyone may look
    when: annotations.readOnlyHint
    effect: allow
  - name: small refunds
    when: '"clerk" in principal.roles && name == "refund" && arguments.amount <= 100'
    effect: allow
`))
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := os.WriteFile(keys, []byte(`{"id":"a","hash":"sha256:`+strings.Repeat("0", 64)+`","subject":"ada","name":"Ada","roles":["clerk"]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &explain.Live{
		Rules: func() (*rules.Set, string) { return set, "p.yaml" },
		Tools: func(server string) mcp.Result {
			if server == "mute" {
				return nil
			}
			return mcp.RawResult(`{"tools":[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"refund"}]}`)
		},
		Trusted: func(server string) bool { return server == "shop" }, Auth: []string{"apikeys:" + keys + ",scopes=x"},
	}
	type seen struct {
		Allowed, Listed bool
		Text            []string
		Tried           []rules.Tried
		Known           []explain.Seen
	}
	ask := func(a inspector.Access) (out seen) {
		t.Helper()
		got, err := l.Explain(t.Context(), &a)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got)
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := ask(inspector.Access{Server: "shop", Tool: "look"}); !got.Allowed || len(got.Tried) != 1 || !strings.Contains(got.Text[0], `by rule "everyone may look" (p.yaml:3)`) {
		t.Errorf("a tool that reads: %+v", got)
	}
	if got := ask(inspector.Access{Server: "other", Tool: "look"}); got.Allowed {
		t.Errorf("the hint of a server that is not trusted counts: %+v", got)
	}
	got := ask(inspector.Access{Server: "shop", Tool: "refund", Principal: "apikey#ada", Arguments: []byte(`{"amount":50}`)})
	if !got.Allowed || !got.Listed || len(got.Tried) != 2 || len(got.Tried[1].Values) == 0 {
		t.Errorf("a key has its roles: %+v", got)
	}
	if len(got.Known) != 2 || got.Known[0].ID != "" || got.Known[0].Allowed || got.Known[1].ID != "apikey#ada" || !got.Known[1].Allowed || got.Known[1].Name != "Ada" {
		t.Errorf("the known callers: %+v", got.Known)
	}
	if got := ask(inspector.Access{Server: "shop", Tool: "refund", Principal: "apikey#ada", Roles: []string{"guest"}, Arguments: []byte(`{"amount":50}`)}); got.Allowed {
		t.Errorf("roles of the question replace those of the key: %+v", got)
	}
	if got := ask(inspector.Access{Server: "mute", Tool: "anything"}); !strings.Contains(strings.Join(got.Text, " "), "has not listed its tools yet") {
		t.Errorf("a server without a list: %+v", got.Text)
	}
	for _, tt := range []struct {
		a    inspector.Access
		want string
	}{
		{inspector.Access{Server: "shop", Tool: "refnd"}, `no tool "refnd"; did you mean "refund"`},
		{inspector.Access{Server: "shop", Tool: "look", Roles: []string{"clerk"}}, "need a principal"},
	} {
		if _, err := l.Explain(t.Context(), &tt.a); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.a, err, tt.want)
		}
	}
	l.Rules = func() (*rules.Set, string) { return nil, "" }
	if got := ask(inspector.Access{Server: "shop", Tool: "refund"}); !got.Allowed || !strings.Contains(got.Text[0], "has no policy") {
		t.Errorf("without a policy: %+v", got)
	}
}
