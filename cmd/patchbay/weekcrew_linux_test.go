package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// weekBound is the time in which each call of the week ends.
const weekBound = 30 * time.Second

// week is a week of three teams behind one up.
type week struct {
	t           *testing.T
	r           *running
	dir, ledger string
	keys        map[string]string // by person
	crew        []*member
	now         atomic.Pointer[stage]
	over        chan struct{}
	working     sync.WaitGroup
	calls       atomic.Int64
	gone        string // the person whose key is revoked

	mu       sync.Mutex
	attempts []*attempt // guarded by mu
}

// lists are the names of the tools of each team.
type lists map[string][]string

// stage is a part of the week.
type stage struct {
	name  string
	lists []lists // those that are possible: one, or two during a change
	says  []saying
	gone  string // the person whose key is, or is being, revoked
}

// has reports whether a team has a tool in a stage: always, and ever.
func (s *stage) has(team, tool string) (always, ever bool) {
	always = true
	for _, l := range s.lists {
		in := slices.Contains(l[team], tool)
		always, ever = always && in, ever || in
	}
	return always, ever
}

// saying is an error that clients may read.
type saying struct {
	match *regexp.Regexp
	ran   bool   // the tool may have run
	tool  string // about calls of the tools that match; empty: all
}

func reading(ran bool, tools, match string) saying {
	return saying{regexp.MustCompile(match), ran, tools}
}

// lostServer are the errors of a server whose process or connection ends.
func lostServer(server string) []saying {
	tools := "^(" + server + "_|remember$|remark$|memo$)" // with the names that views have for their tools
	return []saying{
		reading(true, tools, `^connection to (replica \S+ of )?server "`+server+`" lost; the tool may or may not have run`),
		reading(false, tools, `^the state that server "`+server+`" kept for you is gone: .*This request did not reach it; the next one starts afresh$`),
	}
}

// stoppedServer is the error of a call that waited at a server when that was removed or changed.
func stoppedServer(server string) []saying {
	return []saying{reading(false, "^"+server+"_", `^server "`+server+`" is stopped$`)}
}

// everyDay are the errors that clients may read at any time.
var everyDay = []saying{
	reading(false, `^(web|site)_note$`, `^more calls of "(web|site)_note" than 5/h from one caller; try again in `),
	reading(false, `^single_work$`, `^server "single" is in use by another (session|caller); it is free again .* did not reach it$`),
}

// member is a client of a person of a team.
type member struct {
	name, person, team string
	revision           mcp.Revision
	plan               []string // the tools to call, by turns
	session            *mcp.Session
	cycles             atomic.Int64 // how many times it has been through its plan
	heard              atomic.Int64 // list_changed
}

// attempt is a call of a client.
type attempt struct {
	m            *member
	id, tool     string
	began, ended *stage
	says         []saying // what the call may get, besides; of a call that the test makes by itself
	trace        string
	outcome      string // "ok", "tool error", "error" or "unauthorized"
	text         string
	took         time.Duration
}

// dial opens the session of a member.
func (w *week) dial(m *member) {
	w.t.Helper()
	c := &mcp.Client{Name: m.name, Version: "1", Revisions: []mcp.Revision{m.revision}, Header: http.Header{"Authorization": {"Bearer " + w.keys[m.person]}}}
	c.OnSample = func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
		question := (&mcp.SampleResult{Content: r.Messages[0].Content}).Text()
		return &mcp.SampleResult{Role: "assistant", Model: "clerk", Content: []mcp.Content{mcp.Text("yes, " + question)}}, nil
	}
	s, err := c.Dial(w.t.Context(), w.r.url+"/v/"+m.team)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	m.session = s
}

// call makes a call and keeps how it ended.
func (w *week) call(m *member, tool string, until string, may ...saying) *attempt {
	a := &attempt{m: m, id: fmt.Sprintf("%s-%d", m.name, w.calls.Add(1)), tool: tool, says: may}
	w.keep(a)
	return w.make(a, until)
}

// keep notes an attempt before it is made.
func (w *week) keep(a *attempt) {
	sum := sha256.Sum256([]byte(a.id))
	a.trace = hex.EncodeToString(sum[:16])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts = append(w.attempts, a)
}

// make makes the call of an attempt.
func (w *week) make(a *attempt, until string) *attempt {
	ctx, cancel := context.WithTimeout(context.Background(), weekBound)
	defer cancel()
	a.began = w.now.Load()
	begun := time.Now()
	parent := json.RawMessage(`"00-` + a.trace + `-0000000000000001-01"`)
	res, err := a.m.session.CallTool(ctx, a.tool, errand{a.id, until}, mcp.WithMeta(mcp.Meta{"traceparent": parent}))
	a.took, a.ended = time.Since(begun), w.now.Load()
	var status *mcp.HTTPError
	var rpc *mcp.Error
	switch {
	case errors.As(err, &status) && status.Status == http.StatusUnauthorized:
		a.outcome, a.text = "unauthorized", err.Error()
	case errors.As(err, &rpc):
		a.outcome, a.text = "error", rpc.Message
	case err != nil:
		a.outcome, a.text = "error", err.Error()
	case res.IsError:
		a.outcome, a.text = "tool error", res.Text()
	default:
		a.outcome, a.text = "ok", res.Text()
	}
	return a
}

// work makes calls until the week is over.
func (w *week) work(m *member) {
	wrong := 0
	for {
		for _, tool := range m.plan {
			select {
			case <-w.over:
				return
			case <-time.After(3 * time.Millisecond): // the machine has others to serve
			}
			w.call(m, tool, "")
		}
		before := w.now.Load()
		got, err := w.listed(m)
		if after := w.now.Load(); before == after && len(after.lists) == 1 && after.gone != m.person {
			if want := after.lists[0][m.team]; (err != nil || !slices.Equal(got, want)) && wrong < 3 {
				wrong++
				w.t.Errorf("%s: %s lists %v, %v; its view has %v", after.name, m.name, got, err, want)
			}
		}
		m.cycles.Add(1)
	}
}

// watch counts the changes of lists that a member is told of.
func (w *week) watch(ctx context.Context, m *member, ready *sync.WaitGroup) {
	ack := sync.OnceFunc(ready.Done)
	defer ack()
	for ctx.Err() == nil {
		for e, err := range m.session.Watch(ctx) {
			switch {
			case err != nil:
			case e.Method == "notifications/tools/list_changed":
				m.heard.Add(1)
			default:
				ack()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // the subscription has ended
		}
	}
}

// listed returns the names that a member lists, in order.
func (w *week) listed(m *member) (names []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), weekBound)
	defer cancel()
	for tool, err := range m.session.Tools(ctx, mcp.WithoutCache()) {
		if err != nil {
			return names, err
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names, nil
}

// round waits until each client has called all its tools once more.
func (w *week) round() {
	w.t.Helper()
	marks := make([]int64, len(w.crew))
	for i, m := range w.crew {
		marks[i] = m.cycles.Load() + 2
	}
	for i, m := range w.crew {
		until(w.t, m.name+" has called its tools", func() bool { return m.cycles.Load() >= marks[i] })
	}
}

// change makes a change. Until each team sees its list and each client has been through its tools, the
// lists may be those from before, and calls may get the errors of during; from then on only those of after.
func (w *week) change(name string, next lists, during, after []saying, do func()) {
	w.t.Helper()
	before := w.now.Load()
	last := before.lists[len(before.lists)-1]
	heard := make([]int64, len(w.crew))
	for i, m := range w.crew {
		heard[i] = m.heard.Load()
	}
	w.now.Store(&stage{name, []lists{last, next}, slices.Concat(before.says, during, after), w.gone})
	do()
	for i, m := range w.crew {
		if slices.Equal(last[m.team], next[m.team]) || m.person == w.gone {
			continue
		}
		until(w.t, fmt.Sprintf("%s: %s lists %v", name, m.name, next[m.team]), func() bool {
			got, err := w.listed(m)
			return err == nil && slices.Equal(got, next[m.team])
		})
		until(w.t, fmt.Sprintf("%s: %s is told that its list has changed", name, m.name), func() bool { return m.heard.Load() > heard[i] })
	}
	w.round()
	w.now.Store(&stage{name + ", done", []lists{next}, after, w.gone})
	w.round()
}

// errandOut is a call in progress that ends when its file exists.
type errandOut struct {
	deed
	file string
	done chan *attempt
}

// hold begins a call, and waits until its tool runs. The client makes another one before, as it may have to
// learn that the server has lost its state.
func (w *week) hold(m *member, tool string, may ...saying) *errandOut {
	w.t.Helper()
	server, _, _ := strings.Cut(tool, "_")
	w.call(m, tool, "", lostServer(server)...)
	a := &attempt{m: m, id: fmt.Sprintf("%s-held-%d", m.name, w.calls.Add(1)), tool: tool, says: may}
	h := &errandOut{file: filepath.Join(w.dir, a.id), done: make(chan *attempt, 1)}
	w.keep(a)
	go func() { h.done <- w.make(a, h.file) }()
	until(w.t, "a call of "+tool+" runs", func() bool {
		for _, d := range deeds(w.t, w.ledger) {
			if d.ID == a.id {
				h.deed = d
				return true
			}
		}
		return false
	})
	return h
}

// end lets the tool finish.
func (w *week) end(h *errandOut) *attempt {
	w.t.Helper()
	if err := os.WriteFile(h.file, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return <-h.done
}

// write replaces a file of the deployment.
func (w *week) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
}
