package steer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// pair is a cluster of two nodes, and one that has ended.
type pair struct {
	fails error
	asked []string
}

func (p *pair) List(context.Context) (*NodeList, error) {
	return &NodeList{Cluster: "c", Node: "shop", Nodes: []Node{{Name: "gone", State: NotSeen}, {Name: "other", State: "ready"}, {Name: "shop", State: "ready"}}}, p.fails
}

func (p *pair) Remove(_ context.Context, node, by string) error {
	p.asked = append(p.asked, fmt.Sprint("remove ", node, " ", by))
	return p.fails
}

func (p *pair) Drain(_ context.Context, node string, undo bool, by string) error {
	p.asked = append(p.asked, fmt.Sprint(node, " ", undo, " ", by))
	return p.fails
}

// A person drains a node that exists, and learns why another is not drained.
func TestDrain(t *testing.T) {
	g, _ := newGateway(t)
	post := func(node, body string) string {
		w := as(g, "POST", Path+"/nodes/"+node+"/drain", body, nil, Role)
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	if got := post("shop", ""); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "this gateway is alone") {
		t.Errorf("a gateway alone: %s", got)
	}
	p := &pair{}
	g.Nodes = p
	for _, tt := range []struct{ node, body, want string }{
		{"shop", "", `200 {"node":"shop","draining":true,`},
		{"other", `{"undo": true}`, `200 {"node":"other","draining":false,`},
		{"othr", "", "404 "},
		{"gone", "", "409 "},
		{"gone", `{"undo": true}`, "200 "},
		{"shop", `{"undone": true}`, "400 "},
		{"other", `{"remove": true}`, "409 "},
		{"gone", `{"remove": true}`, `200 {"node":"gone","draining":false,"text":"gone: removed`},
		{"longgone", `{"remove": true}`, "200 "},
		{"gone", `{"remove": true, "undo": true}`, "400 "},
		{"shop", "7", "400 "},
	} {
		if got := post(tt.node, tt.body); !strings.HasPrefix(got, tt.want) {
			t.Errorf("drain %s %s = %s, want %s", tt.node, tt.body, got, tt.want)
		}
	}
	if got := strings.Join(p.asked, ", "); got != "shop false as#ada, other true as#ada, gone true as#ada, remove gone as#ada, remove longgone as#ada" {
		t.Errorf("the cluster was asked %s", got)
	}
	p.fails = errors.New("the cluster does not answer")
	if w := as(g, "GET", Path+"/nodes", "", nil); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the cluster does not answer") {
		t.Errorf("a minority: %d %s", w.Code, w.Body)
	}
}
