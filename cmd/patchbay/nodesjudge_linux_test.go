package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// traced notes the connections of requests, and so the nodes that they came to. A GET that waits for events is not noted.
type traced struct {
	http.RoundTripper
	front *front

	mu    sync.Mutex
	local []string // addresses of connections; guarded by mu
}

func (w *traced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "" {
		return w.RoundTripper.RoundTrip(r)
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.local = append(w.local, got.Conn.LocalAddr().String())
	}})
	return w.RoundTripper.RoundTrip(r.WithContext(ctx))
}

// take returns the nodes of the requests since it was called last; -1: no node has taken the connection.
func (w *traced) take() (nodes []int) {
	w.mu.Lock()
	local := w.local
	w.local = nil
	w.mu.Unlock()
	w.front.mu.Lock()
	defer w.front.mu.Unlock()
	for _, address := range local {
		if n, ok := w.front.taken[address]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// failure is a call without an answer, or an attempt to open a session.
type failure struct {
	id    string // of the call; that of an attempt has not run
	text  string
	words string // those of text that are the same for each call; empty: none that are known
	kind  int
	at    []int // nodes of its connections
	span
}

// The kinds of failures.
const (
	notListed     = iota
	inWords       // the call has not run
	outcomeUnsure // in words: it may have run
	brokenOff     // without words: a connection broke
)

// limitWords are in the error of a call that a limit has refused.
const limitWords = "more calls of "

// failureWords are all words with which calls may fail while nodes are harmed. Those which say that a call may have run come first,
// and broken connections last, as the words of others may quote these.
var failureWords = []struct {
	kind  int
	words []string
}{
	{outcomeUnsure, []string{"whether it has done what was asked is not known", "may have run", "may or may not have run", "may have had an effect"}},
	{inWords, []string{
		limitWords, "the node of the session cannot be reached", "the cluster does not answer", "cut off from the others", "the owner has changed",
		"the cluster has lost what its nodes share", "the session moves", "the store of sessions does not answer", "the audit log cannot be written",
		"shutting down", "the nodes have just come together", "has not joined the others yet",
	}},
	{brokenOff, []string{"connection reset", "connection refused", "broken pipe", "EOF", "server closed"}},
}

func newFailure(id, text string, at []int, began time.Time) failure {
	f := failure{id: id, text: text, at: at, span: span{began, time.Now()}}
	for _, of := range failureWords {
		for _, words := range of.words {
			if strings.Contains(text, words) {
				f.words, f.kind = words, of.kind
				return f
			}
		}
	}
	return f
}

// judge sees that what has happened may happen.
func (c *chaos) judge(t *testing.T, callers []*caller, counters []*counter) {
	runs := c.book.runs(t)
	for id, n := range runs {
		if n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	logs := c.logged(t, runs)
	c.counted(t, counters, runs, logs)
	answered, failed, unsent, opened, least := 0, 0, 0, 0, 0
	failures, slowest := map[string]int{}, time.Duration(0)
	for _, caller := range callers {
		for id, ok := range caller.done {
			switch {
			case ok && runs[id] == 0:
				t.Errorf("%s was answered, and did not run", id)
			case ok:
				answered++
			default:
				failed++
				if runs[id] == 0 {
					unsent++
				}
			}
		}
		for _, f := range caller.failed {
			failures[string(caller.revision)+": "+f.words]++
			c.explained(t, f, runs, logs)
		}
		for _, at := range caller.lost {
			t.Errorf("%s: a session was gone at %s", caller.name, at.UTC().Format("15:04:05.000"))
		}
		opened += caller.opened
		slowest = max(slowest, caller.slowest)
		if caller.tool == "do" {
			least += 10
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
}

// begun is the begin of a call in the log of a node. A node that was stopped may send a call on when it goes on: then another one begins
// it, after the client was told that the outcome is not known.
type begun struct {
	node string
	at   time.Time
}

// explained sees that a call failed with words that are listed, and that those words are true: a call that was refused has not run. A
// connection may break without words only if its node was killed, stopped or ended then, and the outcome of a call may be unknown only if the node that
// ran it, or one that it passed, was killed or stopped, or NATS was killed, which all pass that nodes forward there.
func (c *chaos) explained(t *testing.T, f failure, runs map[string]int, logs map[string][]begun) {
	t.Helper()
	var names []string
	for _, n := range f.at {
		if n >= 0 {
			names = append(names, c.nodes[n].name)
		}
	}
	at := f.from.UTC().Format("15:04:05.000") + " to " + f.to.UTC().Format("15:04:05.000")
	switch f.kind {
	case inWords:
		if runs[f.id] > 0 {
			t.Errorf("%s: it was refused at %s (%s), and ran at %v: %s", f.id, names, at, logs[f.id], f.text)
		}
	case brokenOff:
		if slices.Contains(f.at, -1) { // the front has closed the connection: no node took it
			for _, n := range c.nodes {
				if !c.harmed(n.name, f.span) {
					t.Errorf("%s: no node took its connection (%s), though %s was not harmed", f.id, at, n.name)
				}
			}
		} else if !slices.ContainsFunc(names, func(name string) bool { return c.harmed(name, f.span) }) {
			t.Errorf("%s: the connection to %s broke without words (%s), and that node was not harmed: %s", f.id, names, at, f.text)
		}
	case outcomeUnsure:
		began := slices.ContainsFunc(logs[f.id], func(b begun) bool { return b.at.Before(f.to) })
		for _, b := range logs[f.id] {
			names = append(names, b.node)
		}
		if !began { // the node of its session had not begun the call: which one that was is not known
			names = nil
			for _, n := range c.nodes {
				names = append(names, n.name)
			}
		}
		harmed := func(name string) bool { return c.harmed(name, f.span, "end") }
		if slices.ContainsFunc(names, harmed) || slices.ContainsFunc(c.silent(names, f.to), harmed) {
			return
		}
		report := t.Logf // in the gate, other tests may keep a node from running for so long that others take it for dead
		if long.On() {
			report = t.Errorf
		}
		report("%s: the outcome of the call at %s is not known (%s), and none of those was killed or stopped: %s", f.id, names, at, f.text)
	default:
		t.Errorf("%s: it failed with words that are not listed, at %s (%s): %s", f.id, names, at, f.text)
	}
}

// inVain is what a node says of another one that did not answer a request.
var inVain = regexp.MustCompile(`time=(\S+) level=WARN msg="a request was forwarded in vain" node=(\S+)`)

// silent returns the nodes that did not answer what some nodes had forwarded right before a time. A call may pass a node that had its session before.
func (c *chaos) silent(names []string, before time.Time) (list []string) {
	for _, n := range c.processes {
		if !slices.Contains(names, n.name) {
			continue
		}
		for _, said := range inVain.FindAllStringSubmatch(n.stderr.String(), -1) {
			at, err := time.Parse(time.RFC3339, said[1])
			if past := before.Sub(at.Add(-n.clock)); err == nil && past >= 0 && past < 100*time.Millisecond {
				list = append(list, said[2])
			}
		}
	}
	return list
}

// harmed reports whether a node was killed, stopped or ended, or all were cut off from each other, at a time or right before, but for some ways.
func (c *chaos) harmed(node string, during span, but ...string) bool {
	return slices.ContainsFunc(c.harms, func(h harmed) bool {
		if slices.Contains(but, h.how) {
			return false
		}
		after := time.Second
		switch h.how {
		case "stop":
			after = 5 * time.Second // connections to a node that was stopped break when it goes on
		case "full": // its process serves all the time
			return false
		}
		return (h.node == node || h.node == "") && during.common(span{h.from, h.to.Add(after)}) > 0
	})
}

// logged sees that the logs of all nodes, which have noted each other's checkpoints, are whole together, and that one of them has the
// begin of each call that ran. It returns the nodes whose logs have it.
func (c *chaos) logged(t *testing.T, runs map[string]int) map[string][]begun {
	logged, ids := map[string][]begun{}, regexp.MustCompile(`"id":"([ce]\d+-\d+)"`)
	args, keys := []string{"audit", "verify"}, []string{}
	for _, n := range c.nodes {
		log := filepath.Join(c.dir, n.name)
		args, keys = append(args, log+".jsonl"), append(keys, "--key", log+".key.pub")
		files, err := filepath.Glob(log + "*.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				id := ids.FindStringSubmatch(line)
				if id == nil || !strings.Contains(line, `"call.begin"`) {
					continue
				}
				var entry struct{ Time time.Time }
				if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time.IsZero() {
					t.Errorf("%s: %s: %v", path, line, err)
				}
				logged[id[1]] = append(logged[id[1]], begun{n.name, entry.Time.Add(-n.clock)})
			}
		}
	}
	var out strings.Builder
	code := run(t.Context(), append(args, keys...), strings.NewReader(""), &out, &out)
	if code != exitOK || strings.Count(out.String(), " as other logs have noted them") != len(c.nodes) {
		t.Errorf("audit verify of the logs of all nodes = %d: %s", code, &out)
	}
	for id := range runs {
		if len(logged[id]) == 0 {
			t.Errorf("%s ran, and no log has its begin", id)
		}
	}
	return logged
}
