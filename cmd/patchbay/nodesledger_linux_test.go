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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// ledger is a server that notes each execution of a call by its id.
type ledger struct {
	server *mcp.Server
	mu     sync.Mutex
	runs   map[string]int // guarded by mu
	scarce int            // calls of the limited tool; guarded by mu
}

const ledgerPage = "ledger://page" // a resource of the ledger

func (l *ledger) serve(t *testing.T) (url string) {
	l.server, l.runs = &mcp.Server{Name: "ledger", Version: "1"}, map[string]int{}
	type deed struct {
		ID   string `json:"id"`
		Wait int    `json:"wait"` // ms
	}
	note := func(id string, scarce int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs[id]++
		l.scarce += scarce
	}
	mcp.AddTool(l.server, mcp.Tool{Name: "do"}, func(_ context.Context, d deed) (string, error) {
		note(d.ID, 0)
		time.Sleep(time.Duration(d.Wait) * time.Millisecond) // the work, which may outlast the node that asked for it
		return "did " + d.ID, nil
	})
	mcp.AddTool(l.server, mcp.Tool{Name: "scarce"}, func(_ context.Context, d deed) (string, error) {
		note(d.ID, 1)
		return "did " + d.ID, nil
	})
	mcp.AddResource(l.server, mcp.Resource{URI: ledgerPage, Name: "page"}, func(context.Context) (string, error) { return "text", nil })
	web := httptest.NewServer(l.server)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
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
	failures map[string]int
	unknown  []span // calls that may have run
	slowest  time.Duration
}

func newCaller(name string, r mcp.Revision, tool string, think time.Duration) *caller {
	return &caller{name: name, revision: r, tool: tool, think: think, done: map[string]bool{}, failures: map[string]int{}}
}

// call calls the ledger until a time.
func (c *caller) call(t *testing.T, url string, end time.Time) {
	client := &mcp.Client{
		Name: c.name, Revisions: []mcp.Revision{c.revision},
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, // so that each request is at another node
	}
	var s *mcp.Session
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for n := 0; time.Now().Before(end); n++ {
		id := fmt.Sprintf("%s-%d", c.name, n)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		began := time.Now()
		var res *mcp.ToolResult
		var err error
		if s == nil {
			if s, err = client.Dial(ctx, url); err == nil {
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
			words := chaosWords(err)
			c.failures[string(c.revision)+": "+words]++
			if words == unknownWords {
				c.unknown = append(c.unknown, span{began, time.Now()})
			}
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

const unknownWords = "whether it has done what was asked is not known"

// limitWords are in the error of a call that a limit has refused.
const limitWords = "more calls of "

// chaosWords returns an error without what differs from call to call.
func chaosWords(err error) string {
	text := err.Error()
	for _, known := range []string{
		unknownWords, limitWords, "the node of the session cannot be reached", "the cluster does not answer", "cut off from the others", "the owner has changed",
		"the cluster has lost what its nodes share", "the session moves", "the store of sessions does not answer", "the audit log cannot be written",
		"connection reset", "connection refused", "EOF", "server closed", "shutting down", "may have run",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}

// watcher is a client of a revision with sessions that watches a resource of the ledger over a GET stream.
type watcher struct {
	url, id  string
	revision mcp.Revision
	n        int // requests

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
	return http.DefaultClient.Do(r)
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

// judge sees that what has happened may happen.
func (c *chaos) judge(t *testing.T, callers []*caller) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	for id, n := range c.book.runs {
		if n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	answered, failed, unsent, opened, least := 0, 0, 0, 0, 0
	failures, slowest := map[string]int{}, time.Duration(0)
	for _, caller := range callers {
		for id, ok := range caller.done {
			switch {
			case ok && c.book.runs[id] == 0:
				t.Errorf("%s was answered, and did not run", id)
			case ok:
				answered++
			default:
				failed++
				if c.book.runs[id] == 0 {
					unsent++
				}
			}
		}
		for text, n := range caller.failures {
			failures[text] += n
			if strings.Contains(text, "context deadline exceeded") {
				t.Errorf("%s: %d calls got no answer: %s", caller.name, n, text)
			}
		}
		for _, at := range caller.lost {
			t.Errorf("%s: a session was gone at %s", caller.name, at.UTC().Format("15:04:05.000"))
		}
		opened += caller.opened
		slowest = max(slowest, caller.slowest)
		if caller.tool == "do" {
			least += 10
		}
		for _, call := range caller.unknown {
			c.explained(t, caller.name, call)
		}
	}
	t.Logf("%v: %d calls answered, %d failed, of which %d did not run; %d sessions of %d clients; the slowest took %v; failures: %v",
		c.counts(), answered, failed, unsent, opened, len(callers), slowest.Round(time.Millisecond), failures)
	// A node that is stopped takes connections, and answers when it goes on: then it has five seconds.
	if most := long.Or(25*time.Second, 30*time.Second); slowest > most {
		t.Errorf("a call took %v", slowest)
	}
	if answered < least {
		t.Errorf("only %d calls were answered", answered)
	}
	c.logged(t)
}

// explained sees that a call whose outcome is not known was in progress while a node was harmed, or right after. On a machine
// that is busy with other tests, nodes may take each other for dead.
func (c *chaos) explained(t *testing.T, name string, call span) {
	const after = 5 * time.Second // connections to a node that was stopped break when it goes on
	if long.On() && !slices.ContainsFunc(c.harms, func(h harmed) bool { return call.common(span{h.from, h.to.Add(after)}) > 0 }) {
		t.Errorf("%s: the outcome of a call at %s is not known, and no node was harmed then", name, call.from.UTC().Format("15:04:05.000"))
	}
}

// logged sees that each log of a node is whole, and that one of them has the begin of each call that ran.
func (c *chaos) logged(t *testing.T) {
	logged, begins := map[string]bool{}, regexp.MustCompile(`"id":"(c\d+-\d+)"`)
	for _, n := range c.nodes {
		log := filepath.Join(c.dir, n.name+".jsonl")
		var out strings.Builder
		if code := run(t.Context(), []string{"audit", "verify", log}, strings.NewReader(""), &out, &out); code != 0 {
			t.Errorf("the audit log of %s: %s", n.name, out.String())
		}
		files, err := filepath.Glob(filepath.Join(c.dir, n.name+"*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if id := begins.FindStringSubmatch(line); id != nil && strings.Contains(line, `"call.begin"`) {
					logged[id[1]] = true
				}
			}
		}
	}
	for id := range c.book.runs {
		if !logged[id] {
			t.Errorf("%s ran, and no log has its begin", id)
		}
	}
}
