package policy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// Another spelling of a URI does not bypass a rule about it.
func TestURIsAreDecidedAsTheyAreMeant(t *testing.T) {
	read := 0
	srv := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		read++
		return mcp.RawResult(`{"contents":[]}`), nil
	})
	public := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: strings.HasPrefix(a.Name, "file:///public/")}
	})
	secret := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: !strings.HasPrefix(a.Name, "file:///secret/") && !strings.HasPrefix(a.Name, "db://host/users")}
	})
	tests := []struct {
		uri            string
		public, secret bool // allowed by the policies
	}{
		{"file:///public/a", true, true},
		{"file:///public/a/", true, true},
		{"file:///public/a%20b", true, true},
		{"file:///public/a b?x=../../secret#../y", true, true},
		{"file:///public/../secret/a", false, false},
		{"file:///public/%2e%2e/secret/a", false, false},
		{"file:///public/..%2fsecret/a", false, false},
		{"file:///public/..%5Csecret%5Ca", false, false},
		{`file:///public/..\secret\a`, false, false},
		{"file:///public/x/../a", true, true},
		{"FILE:///secret/a", false, false},
		{"file:////secret/a", false, false},
		{"file:///%73ecret/a", false, false},
		{"file:///./secret/a", false, false},
		{"db://HOST/users/1", false, false},
		{"mem:thing", false, true},
		{"not a uri %zz", false, true},
	}
	for _, tt := range tests {
		for _, p := range []struct {
			name   string
			policy policy.Policy
			want   bool
		}{{"public", public, tt.public}, {"secret", secret, tt.secret}} {
			for _, method := range []string{"resources/read", "subscriptions/listen"} {
				params := `{"uri":` + quoted(tt.uri) + `}`
				if method == "subscriptions/listen" {
					params = `{"notifications":{"resourceSubscriptions":[` + quoted(tt.uri) + `]}}`
				}
				before := read
				_, err := policy.Middleware("s", p.policy, nil)(srv).Handle(t.Context(), &mcp.Request{Method: method, Params: []byte(params)})
				if passed := read > before; passed != p.want || passed != (err == nil) {
					t.Errorf("%s of %s with the policy %q: passed %v (%v), want %v", method, tt.uri, p.name, passed, err, p.want)
				}
			}
		}
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `\`, `\\`) + `"` }
