package inspector

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// A call is explained for administrators, and a body that is not a call is refused with its reason.
func TestExplain(t *testing.T) {
	p := &Page{
		Report: func() *health.Report { return &health.Report{Servers: []health.Server{{Name: "shop"}}} },
		Gateway: Gateway{Explain: func(_ context.Context, a *Access) (any, error) {
			if a.Tool == "nothing" {
				return nil, fmt.Errorf("server %q has no tool %q", a.Server, a.Tool)
			}
			return map[string]string{"got": fmt.Sprint(a.Principal, a.Roles, a.Scopes, " ", a.Server, " ", a.Tool, " ", string(a.Arguments))}, nil
		}},
	}
	p.route()
	for _, tt := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"a call", `{"principal":"apikey#ada","roles":["x"],"server":"shop","tool":"refund","arguments":{"amount":5}}`, 200, `{"got":"apikey#ada[x] [] shop refund {\"amount\":5}"}`},
		{"no arguments", `{"server":"shop","tool":"refund","arguments":null}`, 200, `shop refund "}`},
		{"an unknown server", `{"server":"shp","tool":"refund"}`, 404, `no server has the name \"shp\"`},
		{"an unknown tool", `{"server":"shop","tool":"nothing"}`, 400, `has no tool \"nothing\"`},
		{"no tool", `{"server":"shop"}`, 400, "the tool is missing"},
		{"a list of arguments", `{"server":"shop","tool":"refund","arguments":[1]}`, 400, "not an object"},
		{"an unknown member", `{"sever":"shop"}`, 400, "unknown field"},
		{"a member in another case", `{"server":"shop","Tool":"refund"}`, 400, "unknown field"},
		{"two members of a name", `{"server":"shop","tool":"refund","tool":"look"}`, 400, "cannot be used"},
		{"a second value", `{"server":"shop","tool":"refund"} {}`, 400, "cannot be used"},
		{"null", `null`, 400, "not an object"},
		{"no JSON", `amount=5`, 400, "cannot be used"},
		{"nothing", ``, 400, "cannot be used"},
		{"too much", `{"tool":"` + strings.Repeat("x", maxAccess) + `"}`, 413, "has more than"},
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/ui/explain", strings.NewReader(tt.body))
		w := httptest.NewRecorder()
		p.mux.ServeHTTP(w, r.WithContext(asPerson(r.Context(), ada)))
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: HTTP %d %s, want %d %s", tt.name, w.Code, w.Body, tt.code, tt.want)
		}
	}
	if w := at(p.Gateway)("POST", "/ui/explain", bob); w.Code != http.StatusForbidden {
		t.Errorf("by bob: HTTP %d %s", w.Code, w.Body)
	}
	if w := at(Gateway{})("POST", "/ui/explain", ada); w.Code != http.StatusNotFound {
		t.Errorf("without a gateway: HTTP %d %s", w.Code, w.Body)
	}
}
