package engine

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Clients share a Peer only if all their fields are equal.
func TestPeersShared(t *testing.T) {
	var ps sharedPeers
	t25, t26 := revision.Find(revision.All, "2025-11-25"), revision.Find(revision.All, "2025-06-18")
	a, b := json.RawMessage(`{"name":"a"}`), json.RawMessage(`{}`)
	one := ps.of(t25, Caller{}, a, b)
	for i, other := range []*Peer{
		ps.of(t26, Caller{}, a, b),
		ps.of(t25, Caller{Alone: true}, a, b),
		ps.of(t25, Caller{Principal: "p"}, a, b),
		ps.of(t25, Caller{Principal: "{}"}, a, nil),
		ps.of(t25, Caller{}, b, a),
		ps.of(t25, Caller{}, a, nil),
		ps.of(t25, Caller{}, nil, a),
	} {
		if other == one {
			t.Errorf("client %d has the Peer of another", i)
		}
	}
	said := []byte(`{"name":"a"}`)
	same := ps.of(t25, Caller{}, said, b)
	if same != one {
		t.Error("two clients that are alike have two Peers")
	}
	said[2] = 'X'
	if string(one.Info) != string(a) || string(one.Capabilities) != string(b) {
		t.Errorf("the Peer is %s %s, want %s %s", one.Info, one.Capabilities, a, b)
	}
}

// Shared peers are bounded in number and in size.
func TestPeersBounded(t *testing.T) {
	var ps sharedPeers
	rev := revision.All[0]
	for i := range 10 * maxPeers {
		p := ps.of(rev, Caller{Principal: fmt.Sprint(i)}, nil, nil)
		if p.Principal != fmt.Sprint(i) || len(ps.known) > maxPeers {
			t.Fatalf("client %d is %q, %d are known", i, p.Principal, len(ps.known))
		}
	}
	n, large := len(ps.known), make(json.RawMessage, maxPeerBytes+1)
	if p := ps.of(rev, Caller{}, large, nil); len(p.Info) != len(large) || len(ps.known) != n {
		t.Errorf("a large client is kept: %d of %d bytes, %d known", len(p.Info), len(large), len(ps.known)-n)
	}
}
