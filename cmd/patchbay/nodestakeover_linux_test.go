package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// takeoverTime is how long a session may wait for another node, also if the one that died led NATS. In the gate the machine tests
// other packages meanwhile.
var takeoverTime = long.Or(3*time.Second, 20*time.Second)

// The node of some sessions is killed. The next request of each, which is sent at once to another node, and again if it is refused with
// words, is answered there in time. The test does not run beside others of this package, because it measures time.
func TestTakeoverTime(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for range long.Or(6, 1) {
		takeover(t)
	}
}

// takeover kills a node of new ones.
func takeover(t *testing.T) {
	c := newChaosEmbedded(t, nil)
	defer func() {
		for _, n := range c.nodes {
			n.cmd.Process.Kill()
			n.cmd.Wait()
		}
	}()
	var moving []*watcher
	for i, r := range mcp.Revisions() {
		if r == mcp.V2026_07_28 {
			continue
		}
		w := &watcher{url: c.nodes[0].url, revision: r}
		w.send(t, t.Context(), "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"moving","version":"1"}}`, r))
		if answer := w.send(t, t.Context(), "tools/call", fmt.Sprintf(`{"name":"ledger_do","arguments":{"id":"before-%d","wait":0}}`, i)); !strings.Contains(answer, "did before-") {
			t.Fatalf("%s: %s", r, answer)
		}
		moving = append(moving, w)
	}
	time.Sleep(rand.N(time.Second)) // nodes say once a second that they live
	killed := time.Now()
	c.nodes[0].cmd.Process.Kill()
	c.nodes[0].cmd.Wait()
	var all sync.WaitGroup
	for i, w := range moving {
		all.Go(func() {
			w.url = c.nodes[1+i%2].url
			refused := w.moved(t, fmt.Sprint("after-", i))
			took := time.Since(killed)
			t.Logf("%s: answered %v after the death of its node, refused before: %q", w.revision, took.Round(time.Millisecond), refused)
			if took > takeoverTime {
				t.Errorf("%s: a session waited %v for another node, at most %v is allowed", w.revision, took, takeoverTime)
			}
		})
	}
	all.Wait()
}

// moved calls a tool until the call is answered, and returns the words with which it was refused before.
func (w *watcher) moved(t *testing.T, id string) (refused []string) {
	for n := 9; ; n++ {
		res, err := w.request(t.Context(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ledger_do","arguments":{"id":%q,"wait":0}}}`, n, id), "")
		if err != nil {
			t.Errorf("%s: %v", w.revision, err)
			return refused
		}
		data, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case err == nil && res.StatusCode == http.StatusOK && strings.Contains(string(data), "did "+id):
			return refused
		case err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(data), "try again"):
			t.Errorf("%s: %s, %s, %v", w.revision, res.Status, data, err)
			return refused
		}
		refused = append(refused, string(data))
		time.Sleep(20 * time.Millisecond) // the client makes it again
	}
}
