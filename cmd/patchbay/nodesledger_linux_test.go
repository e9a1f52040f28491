package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// ledger is a server that notes each execution of a call by its id, in a file.
type ledger struct {
	server *mcp.Server
	path   string
	mu     sync.Mutex
	scarce int // calls of the limited tool; guarded by mu
}

const ledgerPage = "ledger://page" // a resource of the ledger

func (l *ledger) serve(t *testing.T) (url string) {
	l.server = &mcp.Server{Name: "ledger", Version: "1"}
	type deed struct {
		ID   string `json:"id"`
		Wait int    `json:"wait"` // ms
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	note := func(id string, scarce int) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.scarce += scarce
		_, err := file.WriteString(id + "\n") // before the work
		return err
	}
	mcp.AddTool(l.server, mcp.Tool{Name: "do"}, func(_ context.Context, d deed) (string, error) {
		if err := note(d.ID, 0); err != nil {
			return "", err
		}
		time.Sleep(time.Duration(d.Wait) * time.Millisecond) // the work, which may outlast the node that asked for it
		return "did " + d.ID, nil
	})
	mcp.AddTool(l.server, mcp.Tool{Name: "scarce"}, func(_ context.Context, d deed) (string, error) {
		return "did " + d.ID, note(d.ID, 1)
	})
	mcp.AddTool(l.server, mcp.Tool{Name: "count"}, func(ctx context.Context, d deed) (string, error) {
		if err := note(d.ID, 0); err != nil {
			return "", err
		}
		for i := range countTo {
			mcp.Progress(ctx, float64(i+1), countTo, "")
			time.Sleep(time.Duration(d.Wait) * time.Millisecond)
		}
		return "did " + d.ID, nil
	})
	mcp.AddResource(l.server, mcp.Resource{URI: ledgerPage, Name: "page"}, func(context.Context) (string, error) { return "text", nil })
	web := httptest.NewServer(l.server)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); file.Close() })
	return web.URL
}

// runs returns how often each call has run, as the file says.
func (l *ledger) runs(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(data)) {
		runs[strings.TrimSuffix(line, "\n")]++
	}
	return runs
}

// span is a time in which something happened.
type span struct{ from, to time.Time }

// common returns how long both last at once.
func (s span) common(o span) time.Duration {
	if o.from.After(s.from) {
		s.from = o.from
	}
	if o.to.Before(s.to) {
		s.to = o.to
	}
	return max(0, s.to.Sub(s.from))
}

// caller is a client of the nodes.
type caller struct {
	name     string
	revision mcp.Revision
	tool     string
	think    time.Duration   // at most, between two calls
	done     map[string]bool // calls, and whether they were answered
	opened   int             // sessions
	lost     []time.Time     // when a session was gone
	failed   []failure
	slowest  time.Duration
}

func newCaller(name string, r mcp.Revision, tool string, think time.Duration) *caller {
	return &caller{name: name, revision: r, tool: tool, think: think, done: map[string]bool{}}
}

// call calls the ledger until calling ends.
func (c *caller) call(t *testing.T, f *front, calling context.Context) {
	wire := &traced{front: f, RoundTripper: &http.Transport{DisableKeepAlives: true}} // so that each request is at another node
	client := &mcp.Client{Name: c.name, Revisions: []mcp.Revision{c.revision}, HTTPClient: &http.Client{Transport: wire}}
	var s *mcp.Session
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for n := 0; calling.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", c.name, n)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		wire.take()
		began := time.Now()
		var res *mcp.ToolResult
		var err error
		if s == nil {
			if s, err = client.Dial(ctx, f.url()); err == nil {
				c.opened++
			}
		}
		sent := err == nil
		if sent {
			res, err = s.CallTool(ctx, "ledger_"+c.tool, map[string]any{"id": id, "wait": rand.IntN(50)})
		}
		stop()
		c.slowest = max(c.slowest, time.Since(began))
		switch {
		case err != nil:
			c.failed = append(c.failed, newFailure(id, err.Error(), wire.take(), began))
			if errors.Is(err, mcp.ErrSessionLost) {
				c.lost = append(c.lost, time.Now())
			}
			if s != nil && s.Err() != nil {
				s.Close()
				s = nil
			}
			if sent {
				c.done[id] = false
			}
		case res.IsError || res.Text() != "did "+id:
			t.Errorf("%s: the answer to %s is %q", c.name, id, res.Text())
		default:
			c.done[id] = true
		}
		time.Sleep(rand.N(c.think)) // it thinks
	}
}

// watcher is a client of a revision with sessions that watches a resource of the ledger over a GET stream.
type watcher struct {
	url, id  string
	revision mcp.Revision
	wire     http.RoundTripper // nil: http.DefaultTransport
	n        int               // requests

	mu    sync.Mutex
	ids   map[string]bool // of events; guarded by mu
	twice []string        // guarded by mu
	seen  int             // changes of the resource; guarded by mu
}

// changes returns how many changes the watcher has seen.
func (w *watcher) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// send sends a request until it is answered, and returns the answer.
func (w *watcher) send(t *testing.T, ctx context.Context, method, params string) (answer string) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		w.n++
		res, err := w.request(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, w.n, method, params), "")
		if err != nil {
			continue
		}
		data, err := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusOK && err == nil && strings.Contains(string(data), `"result"`) {
			if id := res.Header.Get("Mcp-Session-Id"); id != "" {
				w.id = id
			}
			return string(data)
		}
		if res.StatusCode == http.StatusNotFound {
			t.Errorf("watcher of %s: %s: %s", w.revision, method, data)
			return string(data)
		}
	}
	return ""
}

func (w *watcher) request(ctx context.Context, method, body, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for name, value := range map[string]string{"Mcp-Session-Id": w.id, "Last-Event-ID": last} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	r.Close = true // the next one is at another node
	return (&http.Client{Transport: w.wire}).Do(r)
}

// watch watches until ctx ends.
func (w *watcher) watch(t *testing.T, ctx context.Context) {
	w.ids = map[string]bool{}
	w.send(t, ctx, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"watcher","version":"1"}}`, w.revision))
	uri := regexp.MustCompile(`"uri":"([^"]+)"`).FindStringSubmatch(w.send(t, ctx, "resources/list", `{}`))
	if uri == nil {
		if ctx.Err() == nil {
			t.Errorf("watcher of %s: no resource", w.revision)
		}
		return
	}
	w.send(t, ctx, "resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri[1]))
	for last := ""; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		res, err := w.request(ctx, http.MethodGet, "", last)
		if err != nil {
			continue
		}
		if res.StatusCode == http.StatusOK {
			last = w.read(res.Body, last)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusNotFound {
			t.Errorf("watcher of %s: the session is gone", w.revision)
			return
		}
	}
}

// read reads a stream, and returns the last id.
func (w *watcher) read(body io.Reader, last string) string {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		w.mu.Lock()
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if last = id; w.ids[id] {
				w.twice = append(w.twice, id)
			}
			w.ids[id] = true
		}
		if strings.Contains(lines.Text(), "notifications/resources/updated") {
			w.seen++
		}
		w.mu.Unlock()
	}
	return last
}
