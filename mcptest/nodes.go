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

// Cluster is several servers behind one URL.
type Cluster struct {
	URL   string
	Nodes []*mcp.Server

	mu     sync.Mutex
	random *mathrand.Rand // guarded by mu
	served []int          // requests by node; guarded by mu
}

// Nodes starts n servers that share their State.Keys behind one URL. Requests of revision
// 2026-07-28 are spread over them at random (the seed is logged, and set by -mcptest.seed); those
// of older revisions belong to a session and go to the first.
func Nodes(t testing.TB, n int, newServer func() *mcp.Server) *Cluster {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	t.Logf("mcptest.Nodes spreads requests with -mcptest.seed=%d", seed)
	cl := &Cluster{random: mathrand.New(mathrand.NewPCG(seed, 0)), served: make([]int, n)}
	key := make([]byte, 32)
	rand.Read(key)
	for range n {
		s := newServer()
		if s.State.Keys == nil {
			s.State.Keys = [][]byte{key}
		}
		cl.Nodes = append(cl.Nodes, s)
	}
	srv := httptest.NewServer(cl)
	cl.URL = srv.URL
	t.Cleanup(func() {
		for _, s := range cl.Nodes {
			s.Shutdown(ended())
		}
		srv.Close()
	})
	return cl
}

// ServeHTTP passes a request to one of the nodes.
func (cl *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	node := 0
	cl.mu.Lock()
	if r.Header.Get("Mcp-Method") != "" { // only requests of 2026-07-28 have it
		node = cl.random.IntN(len(cl.Nodes))
	}
	cl.served[node]++
	cl.mu.Unlock()
	cl.Nodes[node].ServeHTTP(w, r)
}

// Served returns the number of requests of each node.
func (cl *Cluster) Served() []int {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return append([]int(nil), cl.served...)
}

// Dial opens a session of c with the cluster in revision rev. It ends with the test.
func (cl *Cluster) Dial(t testing.TB, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	return open(t, c, rev, dialer(c, cl.URL))
}
