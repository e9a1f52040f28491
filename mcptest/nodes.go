package mcptest

import (
	"crypto/rand"
	"flag"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

var seedFlag = flag.Uint64("mcptest.seed", 0, "seed of how mcptest.Nodes spreads requests; 0: a random one, which is logged")

// Fleet is several servers behind one URL.
type Fleet struct {
	URL   string
	Nodes []*mcp.Server

	mu     sync.Mutex
	random *mathrand.Rand // guarded by mu
	served []int          // requests by node; guarded by mu
}

// Nodes starts n servers that share their State.Keys behind one URL. Requests of revision
// 2026-07-28 are spread over them at random (the seed is logged, and set by -mcptest.seed); those
// of older revisions belong to a session and go to the first.
func Nodes(t testing.TB, n int, newServer func() *mcp.Server) *Fleet {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	t.Logf("mcptest.Nodes spreads requests with -mcptest.seed=%d", seed)
	f := &Fleet{random: mathrand.New(mathrand.NewPCG(seed, 0)), served: make([]int, n)}
	key := make([]byte, 32)
	rand.Read(key)
	for range n {
		s := newServer()
		if s.State.Keys == nil {
			s.State.Keys = [][]byte{key}
		}
		f.Nodes = append(f.Nodes, s)
	}
	srv := httptest.NewServer(f)
	f.URL = srv.URL
	t.Cleanup(func() {
		for _, s := range f.Nodes {
			s.Shutdown(ended())
		}
		srv.Close()
	})
	return f
}

// ServeHTTP passes a request to one of the nodes.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	node := 0
	f.mu.Lock()
	if r.Header.Get("Mcp-Method") != "" { // only requests of 2026-07-28 have it
		node = f.random.IntN(len(f.Nodes))
	}
	f.served[node]++
	f.mu.Unlock()
	f.Nodes[node].ServeHTTP(w, r)
}

// Served returns the number of requests of each node.
func (f *Fleet) Served() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int(nil), f.served...)
}

// Dial opens a session of c with the fleet in revision rev. It ends with the test.
func (f *Fleet) Dial(t testing.TB, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	return open(t, c, rev, dialer(c, f.URL))
}
