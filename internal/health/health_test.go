package health

import (
	"testing"
	"time"
)

// Trap 13 (F5): up is ready when the required servers and at least one server can be used; it waits
// 5 seconds for the others to be tried.
func TestStateOf(t *testing.T) {
	server := func(name, state string) Server { return Server{Name: name, State: state} }
	needed := func(name, state string) Server {
		return Server{Name: name, State: state, Required: true}
	}
	for _, tt := range []struct {
		name    string
		servers []Server
		untried []string
		ran     time.Duration
		want    string
	}{
		{"no server", nil, nil, 0, Ready},
		{"all", []Server{server("a", "ready"), server("b", "idle")}, nil, 0, Ready},
		{"one is mute, at first", []Server{server("a", "ready"), server("b", "starting")}, []string{"b"}, 4 * time.Second, Starting},
		{"one is mute, later", []Server{server("a", "ready"), server("b", "starting")}, []string{"b"}, 5 * time.Second, Degraded},
		{"one has failed", []Server{server("a", "ready"), server("b", "failing")}, nil, 0, Degraded},
		{"one is started again", []Server{server("a", "ready"), server("b", "starting")}, nil, time.Hour, Degraded},
		{"one needs a login", []Server{server("a", "ready"), server("b", "needs login")}, nil, 0, Degraded},
		{"one is left out", []Server{server("a", "ready"), server("b", "left out")}, nil, 0, Ready},
		{"one is left out alone", []Server{server("b", "left out")}, nil, 0, Failing},
		{"one is disabled", []Server{server("a", "ready"), server("b", "disabled")}, nil, 0, Ready},
		{"a required one is disabled", []Server{server("a", "ready"), needed("b", "disabled")}, nil, 0, Failing},
		{"all are mute", []Server{server("a", "starting")}, []string{"a"}, time.Minute, Starting},
		{"all have failed", []Server{server("a", "failing"), server("b", "crashing")}, nil, 0, Failing},
		{"a required one is mute", []Server{server("a", "ready"), needed("b", "starting")}, []string{"b"}, time.Minute, Starting},
		{"a required one has failed", []Server{server("a", "ready"), needed("b", "failing")}, nil, 0, Failing},
		{"a required one has failed, another is mute", []Server{server("a", "starting"), needed("b", "failing")}, []string{"a"}, 0, Failing},
		{"a required one is started again", []Server{server("a", "ready"), needed("b", "starting")}, nil, time.Hour, Failing},
		{"another than the required one is away", []Server{server("a", "failing"), needed("b", "ready")}, nil, 0, Degraded},
		{"another than the required one is mute", []Server{server("a", "starting"), needed("b", "ready")}, []string{"a"}, time.Minute, Degraded},
	} {
		if got := StateOf(tt.servers, tt.untried, tt.ran, ReadyTime); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// With views of which none is at the endpoint itself, the URL is that of a view: nothing is at the endpoint.
func TestWhere(t *testing.T) {
	const at = "http://127.0.0.1:7420/mcp"
	a, b, c, all := View{Name: "a", Path: "/mcp/v/a"}, View{Name: "b", Path: "/mcp/v/b"}, View{Name: "c", Path: "/mcp/v/c"}, View{Name: "all", Path: "/mcp"}
	for want, r := range map[string]*Report{
		at:                                {URL: at},
		at + "/v/a":                       {URL: at, Views: []View{a}},
		at + "/v/a and another view":      {URL: at, Views: []View{a, b}},
		at + "/v/b and 2 other views":     {URL: at, Views: []View{b, a, c}},
		"http://[::1]:1/mcp":              {URL: "http://[::1]:1/mcp", Views: []View{a, all}},
		"the page http://127.0.0.1:7420/": {Page: "http://127.0.0.1:7420/"},
		"over stdio":                      {Views: []View{{Name: "a"}}},
	} {
		if got := r.Where(); got != want {
			t.Errorf("Where of %+v is %q, want %q", r, got, want)
		}
	}
}
