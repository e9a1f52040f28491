package apps_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/apps"
)

// A policy has the declared origins of a view (XAPP-26-004); without a declaration it is the
// restrictive default (XAPP-26-005); it has nothing else (XAPP-26-006, -036).
func TestPolicy(t *testing.T) {
	const restrictive = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
		"media-src 'self' data:; connect-src 'none'; frame-src 'none'; base-uri 'self'; object-src 'none'"
	const a, b = "https://a.example", "wss://*.b.example:8443"
	tests := []struct {
		name string
		csp  *apps.CSP
		want map[string]string // directives that differ from the default
	}{
		{"none", nil, nil},
		{"empty", &apps.CSP{}, nil},
		{"connect", &apps.CSP{Connect: []string{a, b}}, map[string]string{"connect-src": a + " " + b}},
		{"resources", &apps.CSP{Resource: []string{a}}, map[string]string{
			"script-src": "'self' 'unsafe-inline' " + a, "style-src": "'self' 'unsafe-inline' " + a,
			"img-src": "'self' data: " + a, "font-src": "'self' " + a, "media-src": "'self' data: " + a,
		}},
		{"frames and base", &apps.CSP{Frame: []string{a}, BaseURI: []string{a}}, map[string]string{"frame-src": a, "base-uri": a}},
		{"what would widen it", &apps.CSP{
			Connect:  []string{"*", "https://a.example; script-src *", "https:", "'self'"},
			Resource: []string{"data:", "'unsafe-eval'", "https://a.example *"},
			Frame:    []string{"https://a.example\n*"}, BaseURI: []string{"https://*"},
		}, nil},
		{"the good among the bad", &apps.CSP{Connect: []string{"*", a}}, map[string]string{"connect-src": a}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := directives(restrictive)
			for name, sources := range tt.want {
				want[name] = sources
			}
			got := apps.Needs{CSP: tt.csp}.Policy()
			if diff := cmp.Diff(want, directives(got)); diff != "" {
				t.Errorf("Policy = %s (-want +got):\n%s", got, diff)
			}
		})
	}
}

func directives(policy string) map[string]string {
	out := map[string]string{}
	for d := range strings.SplitSeq(policy, "; ") {
		name, sources, _ := strings.Cut(d, " ")
		out[name] = sources
	}
	return out
}
