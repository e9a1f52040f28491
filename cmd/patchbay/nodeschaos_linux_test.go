package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

const chaosFile = `
servers: mcp.json
listen: {http: "${NODE_HTTP}"}
audit: {file: "${NODE}.jsonl", arguments: redacted, sync: none}
cluster:
  nats: embedded
  name: chaos
  node: ${NODE}
  listen: ${NODE_LISTEN}
  routes: [%s]
  store: ${NODE}
  secret: ${NODE_SECRET}
  drain: 10s
`

// ledger is a server that notes each execution of a call by its id.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int // guarded by mu
}

func (l *ledger) serve(t *testing.T) (url string) {
	s := &mcp.Server{Name: "ledger", Version: "1"}
	type deed struct {
		ID   string `json:"id"`
		Wait int    `json:"wait"` // ms
	}
	mcp.AddTool(s, mcp.Tool{Name: "do"}, func(_ context.Context, d deed) (string, error) {
		l.mu.Lock()
		l.runs[d.ID]++
		l.mu.Unlock()
		time.Sleep(time.Duration(d.Wait) * time.Millisecond) // the work, which may outlast the node that asked for it
		return "did " + d.ID, nil
	})
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

// caller is a client of the nodes.
type caller struct {
	name     string
	revision mcp.Revision
	done     map[string]bool // calls, and whether they were answered
	opened   int             // sessions
	lost     int
	failures map[string]int
	slowest  time.Duration
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
			res, err = s.CallTool(ctx, "ledger_do", map[string]any{"id": id, "wait": rand.IntN(50)})
		}
		stop()
		c.slowest = max(c.slowest, time.Since(began))
		switch {
		case err != nil:
			c.failures[string(c.revision)+": "+chaosWords(err)]++
			if errors.Is(err, mcp.ErrSessionLost) {
				c.lost++
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
		time.Sleep(time.Duration(rand.IntN(long.Or(500, 50))) * time.Millisecond) // it thinks
	}
}

// chaosWords returns an error without what differs from call to call.
func chaosWords(err error) string {
	text := err.Error()
	for _, known := range []string{
		"whether it has done what was asked is not known", "the node of the session cannot be reached", "the cluster does not answer", "cut off from the others", "the owner has changed", "the session was lost",
		"connection reset", "connection refused", "EOF", "server closed", "shutting down", "may have run", "the session moves",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}

// harm does something to a node, and makes it a node again.
func harm(t *testing.T, n *node, how string, again func()) {
	switch how {
	case "kill":
		n.cmd.Process.Kill()
		n.cmd.Wait()
		again()
	case "end":
		n.cmd.Process.Signal(syscall.SIGTERM)
		if err := n.cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", n.name, err, n.stderr)
		}
		again()
	case "stop": // others take its sessions meanwhile
		n.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(long.Or(10*time.Second, 5*time.Second)) // which is the fault
		n.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// freeAddresses returns addresses that nobody listens at.
func freeAddresses(t *testing.T, n int) (list []string) {
	for range n {
		addr, err := freeport.Addr()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, addr)
	}
	return list
}

// Clients of every revision call through three nodes, which are killed, stopped and restarted meanwhile. No call runs twice, none
// that was answered did not run, each is answered or fails with words in time, and each that ran is in the log of a node.
func TestNodesChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	sockets := socketFolder(t)
	book := &ledger{runs: map[string]int{}}
	dir := t.TempDir()
	writeConfig(t, filepath.Join(dir, "mcp.json"), map[string]any{"ledger": map[string]any{"url": book.serve(t)}})
	addresses := freeAddresses(t, 6)
	web, between := addresses[:3], addresses[3:]
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, chaosFile, "nats://"+strings.Join(between, ", nats://")), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := make([]*node, 3)
	begin := func(i int) {
		n := &node{name: "n" + fmt.Sprint(i+1), running: new(running), out: new(transcript)}
		n.cmd, n.stderr = program(t, "up", "--gateway", file, "--no-page")
		n.cmd.Env = append(n.cmd.Env, "XDG_RUNTIME_DIR="+sockets, "NODE="+n.name, "NODE_HTTP="+web[i], "NODE_LISTEN="+between[i], "NODE_SECRET=a secret of the test")
		n.cmd.Stdout = n.out
		n.url = "http://" + web[i] + "/mcp"
		n.begin(t)
		nodes[i] = n
	}
	serves := func(n *node) bool { return strings.Contains(n.out.String(), "ctrl-C ends it") }
	for i := range nodes {
		begin(i)
	}
	for _, n := range nodes {
		until(t, n.name+" serves", func() bool { return serves(n) })
	}
	f := newFront(t, nodes)
	end := time.Now().Add(long.Or(5*time.Minute, 12*time.Second))
	var callers []*caller
	var all sync.WaitGroup
	for i := range long.Or(200, 10) {
		r := mcp.Revisions()[i%len(mcp.Revisions())]
		c := &caller{name: fmt.Sprintf("c%d", i), revision: r, done: map[string]bool{}, failures: map[string]int{}}
		callers = append(callers, c)
		all.Go(func() { c.call(t, "http://"+f.Addr().String()+"/mcp", end) })
	}
	harms := map[string]int{}
	for i := 0; time.Now().Before(end.Add(-2 * time.Second)); i++ {
		how := []string{"kill", "stop", "end"}[i%3]
		at := rand.IntN(3)
		harm(t, nodes[at], how, func() { begin(at) })
		until(t, nodes[at].name+" serves again", func() bool { return serves(nodes[at]) })
		harms[how]++
		if !long.On() && i == 1 {
			break
		}
		time.Sleep(long.Or(5*time.Second, 0)) // three nodes for a while
	}
	all.Wait()
	for _, n := range nodes {
		all.Go(func() { n.end(t) })
	}
	all.Wait()
	judge(t, dir, book, callers, harms)
}

// judge sees that what has happened may happen.
func judge(t *testing.T, dir string, book *ledger, callers []*caller, harms map[string]int) {
	book.mu.Lock()
	defer book.mu.Unlock()
	for id, n := range book.runs {
		if n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	answered, failed, unsent, opened := 0, 0, 0, 0
	failures, slowest := map[string]int{}, time.Duration(0)
	for _, c := range callers {
		for id, ok := range c.done {
			switch {
			case ok && book.runs[id] == 0:
				t.Errorf("%s was answered, and did not run", id)
			case ok:
				answered++
			default:
				failed++
				if book.runs[id] == 0 {
					unsent++
				}
			}
		}
		for text, n := range c.failures {
			failures[text] += n
		}
		opened += c.opened
		slowest = max(slowest, c.slowest)
	}
	t.Logf("%v: %d calls answered, %d failed, of which %d did not run; %d sessions of %d clients; the slowest took %v; failures: %v", harms, answered, failed, unsent, opened, len(callers), slowest.Round(time.Millisecond), failures)
	// A node that is stopped takes connections, and answers when it goes on: then it has five seconds.
	if most := long.Or(18*time.Second, 30*time.Second); slowest > most {
		t.Errorf("a call took %v", slowest)
	}
	if answered < 10*len(callers) {
		t.Errorf("only %d calls were answered", answered)
	}
	logged := map[string]bool{} // ids
	for _, name := range []string{"n1", "n2", "n3"} {
		log := filepath.Join(dir, name+".jsonl")
		var out strings.Builder
		if code := run(t.Context(), []string{"audit", "verify", log}, strings.NewReader(""), &out, &out); code != 0 {
			t.Errorf("the audit log of %s: %s", name, out.String())
		}
		files, err := filepath.Glob(filepath.Join(dir, name+"*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if id := regexp.MustCompile(`"id":"(c\d+-\d+)"`).FindStringSubmatch(line); id != nil && strings.Contains(line, `"call.begin"`) {
					logged[id[1]] = true
				}
			}
		}
	}
	for id := range book.runs {
		if !logged[id] {
			t.Errorf("%s ran, and no log has its begin", id)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(failures)) {
		if strings.Contains(text, "context deadline exceeded") {
			t.Errorf("%d calls got no answer: %s", failures[text], text)
		}
	}
}
