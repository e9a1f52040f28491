package interop

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A cutter is a proxy whose connection breaks once, in the middle of the stream that
// answers a call of the tool "steps": after the first message with an id.
type cutter struct {
	t      *testing.T
	server string
	ends   bool // the stream ends there, and does not break

	mu      sync.Mutex
	cut     bool     // guarded by mu
	resumed []string // Last-Event-ID of each GET; guarded by mu
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, c.server, bytes.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return
	}
	out.Header = r.Header.Clone()
	if id := r.Header.Get("Last-Event-ID"); r.Method == http.MethodGet && id != "" {
		c.mu.Lock()
		c.resumed = append(c.resumed, id)
		c.mu.Unlock()
	}
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.StatusCode)
	w.(http.Flusher).Flush()
	breaks := r.Method == http.MethodPost && bytes.Contains(body, []byte(`"steps"`)) &&
		strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	id, message := false, false
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		io.WriteString(w, line)
		switch {
		case strings.HasPrefix(line, "id:"):
			id = true
		case strings.HasPrefix(line, "data: {"):
			message = true
		case strings.TrimSpace(line) == "":
			w.(http.Flusher).Flush()
			if breaks && id && message && c.first() {
				if c.ends {
					return
				}
				panic(http.ErrAbortHandler) // the connection breaks, without an end
			}
			id, message = false, false
		}
		if err != nil {
			w.(http.Flusher).Flush()
			return
		}
	}
}

// first is true once.
func (c *cutter) first() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.cut
	c.cut = true
	return !was
}

// After a connection breaks in mid-stream, a client of any implementation comes back to
// a server of any other and misses nothing. Streams can be resumed from 2025-03-26 to
// 2025-11-25. The client of mcp-go resumes streams that end, not those that break.
func TestResumption(t *testing.T) {
	ours := peer{name: "patchbay", ask: askOurs, serve: goServer("patchbay"), as: legacy, serves: legacy}
	gosdk := peer{name: "gosdk", ask: askGoSDK, serve: goServer("gosdk"), as: legacy, serves: legacy}
	ts1 := peer{name: "ts1", ask: askScript("client-v1.mjs"), serve: scriptServer("server-v1.mjs"),
		as: []string{v2025_11_25}, serves: legacy, node: true}
	ts2 := peer{name: "ts2", ask: askScript("client-v2.mjs"), serve: scriptServer("server-v2.mjs"),
		as: []string{v2025_11_25}, serves: legacy, node: true}
	mcpgo := peer{name: "mcpgo", ask: askMCPGo, serve: goServer("mcpgo"), as: legacy, serves: legacy}
	for _, p := range []struct{ client, server peer }{
		{ours, ours}, {ours, gosdk}, {ours, mcpgo}, {ours, ts1}, {ours, ts2},
		{gosdk, ours}, {mcpgo, ours}, {ts1, ours}, {ts2, ours},
	} {
		for _, revision := range p.client.as {
			if revision < v2025_03_26 {
				continue // it does not have Streamable HTTP
			}
			t.Run(p.client.name+"-"+p.server.name+"/"+revision, func(t *testing.T) {
				t.Parallel()
				if p.client.node || p.server.node {
					node(t)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				c := &cutter{t: t, server: startServer(t, p.server.serve(web)), ends: p.client.name == "mcpgo"}
				proxy := httptest.NewServer(c)
				defer proxy.Close()
				defer proxy.CloseClientConnections()
				to := target{wire: web, revision: revision, url: proxy.URL}
				if p.client.name == "gosdk" {
					// It delivers a result before notifications that preceded it in the same read, as
					// on a resumed stream. The step "log" calls the same tool, and breaks too.
					to.skip = []string{"progress"}
				}
				got, err := p.client.ask(ctx, to)
				if err != nil {
					t.Fatal(err)
				}
				want := goodReport(p.server.name, revision)
				if slices.Contains(gapsOf(p.client.name, p.server.name, web, revision), "cancelled") {
					delete(got.Errors, "cancelled") // a known gap of the matrix
					got.Cancelled = true
				}
				got.Ask, want.Ask, got.Twice, want.Twice = "", "", "", "" // the matrix checks them
				got.AskBeside, want.AskBeside = "", ""
				if to.skip != nil {
					want.Progress = nil
				}
				delete(got.Errors, "ask")
				delete(got.Errors, "twice")
				delete(got.Errors, "askBeside")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if !c.cut || len(c.resumed) == 0 {
					t.Errorf("cut %v, resumed with %q: nothing was put to the test", c.cut, c.resumed)
				}
			})
		}
	}
}
