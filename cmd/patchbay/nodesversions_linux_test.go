package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// formats match the files with the versions of what nodes share, and of what a node keeps on its disk.
var formats = []string{
	"cluster/*.go", "internal/engine/*.go", "cmd/patchbay/internal/nodes/*.go", "auth/issuer/*.go", "audit/*.go", "limit/*.go",
}

// formatLine is the definition of such a version.
var formatLine = regexp.MustCompile(`(?m)^(\s*(?:const )?(?:\w*[fF]ormat|version)\s+= )(\d+)\b`)

// newerVersion is that of the program that newerProgram builds.
const newerVersion = "99.0.0"

// newerProgram builds this program as a later version of it would be: it writes a newer format of each value.
func newerProgram(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replaced, found := t.TempDir(), map[string]string{}, map[string]int{}
	replace := func(path, text string) {
		name := filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		replaced[path] = name
		write(t, name, []byte(text))
	}
	for _, pattern := range formats {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			newer := formatLine.ReplaceAllStringFunc(string(source), func(line string) string {
				m := formatLine.FindStringSubmatch(line)
				now, err := strconv.Atoi(m[2])
				if err != nil {
					t.Fatal(err)
				}
				found[pattern+strings.TrimSpace(m[1])] = now
				return m[1] + strconv.Itoa(now+1)
			})
			if newer != string(source) && !strings.HasSuffix(path, "_test.go") {
				replace(path, newer)
			}
		}
	}
	if len(found) < 12 {
		t.Fatalf("only %d formats were found: %v", len(found), found)
	}
	// A node takes a session by its record, before it reads the state in it.
	if record, state := found["cluster/*.goconst recordFormat ="], found["internal/engine/*.goconst stateFormat ="]; record < state || state == 0 {
		t.Errorf("the format of records of sessions is %d, and that of the states in them %d: the first grows with the second", record, state)
	}
	version := filepath.Join(root, "cmd/patchbay/version.go")
	source, err := os.ReadFile(version)
	if err != nil {
		t.Fatal(err)
	}
	const definition = "var Version = origin.Own().Version"
	if !strings.Contains(string(source), definition) {
		t.Fatalf("%s has no line %q", version, definition)
	}
	replace(version, strings.Replace(string(source), definition, fmt.Sprintf("var Version = %q", newerVersion), 1))
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "patchbay")
	write(t, file, overlay)
	if out, err := exec.Command("go", "build", "-overlay", file, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// as makes the next process of a node run a program; empty: this one.
func (n *node) as(t *testing.T, path string) {
	t.Helper()
	was := n.cmd
	n.cmd, n.stderr = program(t, was.Args[1:]...)
	if n.cmd.Env, n.out = was.Env, new(transcript); path != "" {
		n.cmd.Path = path
	}
	n.cmd.Stdout = n.out
}

// roamer is a client of one session that sends each request to the node that it is told.
type roamer struct {
	id string
	n  int
}

// ask sends a request once.
func (v *roamer) ask(t *testing.T, at *node, method, params string) (status int, answer string) {
	t.Helper()
	v.n++
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, v.n, method, params)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if v.id != "" {
		r.Header.Set("Mcp-Session-Id", v.id)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %s: %v", at.name, method, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %s: %v", at.name, method, err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		v.id = id
	}
	return res.StatusCode, string(data)
}

// visit opens a session at a node.
func visit(t *testing.T, at *node) *roamer {
	t.Helper()
	v := new(roamer)
	status, answer := v.ask(t, at, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"visitor","version":"1"}}`)
	if status != http.StatusOK || v.id == "" {
		t.Fatalf("%s: initialize: %d %s", at.name, status, answer)
	}
	return v
}

// does calls the ledger at a node. It reports whether the call was answered, and returns the answer.
func (v *roamer) does(t *testing.T, at *node) (ok bool, said string) {
	t.Helper()
	id := fmt.Sprintf("v%.12s-%d", v.id, v.n)
	status, answer := v.ask(t, at, "tools/call", fmt.Sprintf(`{"name":"ledger_do","arguments":{"id":%q,"wait":0}}`, id))
	return status == http.StatusOK && strings.Contains(answer, "did "+id), fmt.Sprint(status, " ", answer)
}

// goesOn sees that a session is answered at each node. A busy machine may lose sight of a node for a moment, which a node says.
func (v *roamer) goesOn(t *testing.T, what string, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		awaited(t, what+", at "+n.name, func() bool {
			ok, said := v.does(t, n)
			if !ok && newFailure("", said, nil, time.Now()).kind != inWords {
				t.Fatalf("%s, at %s: %s", what, n.name, said)
			}
			return ok
		})
	}
}

// newerSession is what an older node says of a session that it cannot continue.
const newerSession = "a newer version of the program has opened the session; update this node"

// mixture is three nodes, of which some are of a newer version, and what they share.
type mixture struct {
	book  *ledger
	nodes []*node
	front *front
	newer string // the program
}

// called lets clients call through the front while something is done, and then some more. No call fails but with words of those that
// nodes say when they are busy, and then it has not run.
func (m *mixture) called(t *testing.T, what string, during func()) {
	t.Helper()
	calling, enough := context.WithCancel(t.Context())
	defer enough()
	var all sync.WaitGroup
	defer all.Wait()
	var callers []*caller
	for i := range 4 {
		r := []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28}[i%2]
		c := newCaller(fmt.Sprintf("%s-%d", what, i), r, "do", long.Or(20*time.Millisecond, 100*time.Millisecond))
		callers = append(callers, c)
		all.Go(func() { c.call(t, m.front, calling) })
	}
	more := func(when string) {
		t.Helper()
		count := func() map[string]int {
			n := map[string]int{}
			for id := range m.book.runs(t) {
				n[id[:strings.LastIndexByte(id, '-')]]++
			}
			return n
		}
		before := count()
		awaited(t, "clients call "+when+": "+what, func() bool {
			now := count()
			for _, c := range callers {
				if now[c.name] < before[c.name]+5 {
					return false
				}
			}
			return true
		})
	}
	more("before")
	during()
	more("after")
	enough()
	all.Wait()
	runs, answered, failures := m.book.runs(t), 0, map[string]int{}
	for _, c := range callers {
		for id, ok := range c.done {
			switch {
			case runs[id] > 1:
				t.Errorf("%s: %s ran %d times", what, id, runs[id])
			case ok && runs[id] == 0:
				t.Errorf("%s: %s was answered, and did not run", what, id)
			case ok:
				answered++
			}
		}
		for _, f := range c.failed {
			failures[f.text]++
			switch {
			case f.kind == inWords && runs[f.id] > 0:
				t.Errorf("%s: %s was refused, and ran: %s", what, f.id, f.text)
			case f.kind == notListed || f.kind == brokenOff:
				t.Errorf("%s: %s, %s: %s", what, f.id, c.revision, f.text)
			}
		}
		if len(c.lost) > 0 || c.opened > 1 {
			t.Errorf("%s: %s lost %d sessions, and opened %d", what, c.name, len(c.lost), c.opened)
		}
	}
	t.Logf("%s: %d calls answered; failures: %v", what, answered, failures)
}

// roll replaces a node by one of the newer version, while clients call.
func (m *mixture) roll(t *testing.T, i int) {
	t.Helper()
	n := m.nodes[i]
	m.called(t, "roll-"+n.name, func() {
		n.end(t)
		n.as(t, m.newer)
		n.begin(t)
		n.serves(t)
		awaited(t, n.name+" gets requests", func() bool { return !m.front.away[i].Load() })
		m.ready(t, n)
	})
}

// ready waits until a node sees all nodes, and returns what it lists.
func (m *mixture) ready(t *testing.T, at *node) (list steer.NodeList) {
	t.Helper()
	awaited(t, at.name+" sees all nodes as they should be", func() bool {
		list, _, _ = nodesAt(t, at)
		return len(list.Nodes) == 3 && strings.Count(states(list), " ready") == 3
	})
	return list
}

// Nodes of this version and of a newer one, whose formats are all newer, are one gateway.
func TestNodesOfVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	newer := newerProgram(t)
	t.Run("upgraded", func(t *testing.T) {
		t.Parallel()
		upgraded(t, newer)
	})
	t.Run("begun_by_newer", func(t *testing.T) {
		t.Parallel()
		begunByNewer(t, newer)
	})
}

// upgraded replaces three nodes one after another by newer ones, and sees in between what both versions do with what the others have
// written.
func upgraded(t *testing.T, newer string) {
	m := &mixture{book: &ledger{path: filepath.Join(t.TempDir(), "ledger")}, newer: newer}
	url := m.book.serve(t)
	mcp.AddTool(m.book.server, mcp.Tool{Name: "later", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, struct{}) (string, error) { return "done later", nil })
	m.nodes = threeNodes(t, map[string]any{"ledger": map[string]any{"url": url}, "asking": map[string]any{"url": daysServer(t)}})
	for _, n := range m.nodes {
		n.begin(t)
	}
	for _, n := range m.nodes {
		n.serves(t)
	}
	m.front = newFront(t, m.nodes)
	m.front.look(t)
	m.ready(t, m.nodes[0])
	m.roll(t, 2)
	older, now := m.nodes[:2], m.nodes[2]
	m.listed(t, older[0], now)
	m.asks(t)
	m.tasks(t, older[0], now)
	m.killed(t, older, now)
	m.stopped(t, older[0], now)
	m.roll(t, 1)
	m.asks(t)
	for _, n := range m.nodes { // one of the older version
		visit(t, n).goesOn(t, "a session that was opened at "+n.name, m.nodes)
	}
	m.taken(t, m.nodes[0], m.nodes[1], m.nodes[2])
	m.roll(t, 0)
	for _, n := range m.nodes {
		if list := m.ready(t, n); len(list.Warnings) > 0 || list.Nodes[0].Version != newerVersion || list.Nodes[2].Version != newerVersion {
			t.Errorf("%s lists %+v", n.name, list)
		}
	}
	for id, n := range m.book.runs(t) {
		if n > 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// listed sees what nodes of both versions list.
func (m *mixture) listed(t *testing.T, older, newer *node) {
	t.Helper()
	list := m.ready(t, newer)
	if list.Nodes[0].Version != Version || list.Nodes[2].Version != newerVersion || len(list.Warnings) > 0 {
		t.Errorf("the newer node lists %+v", list)
	}
	list, _, _ = nodesAt(t, older)
	warning := fmt.Sprintf("node %s: gateway.node.%[1]s has format 2, which patchbay %s does not know: update this node", newer.name, Version)
	if want := "n1 ready, n2 ready, n3 unknown"; states(list) != want || strings.Join(list.Warnings, "; ") != warning {
		t.Errorf("the older node lists %s, %q; want %s, %q", states(list), list.Warnings, want, warning)
	}
	for _, at := range []*node{older, newer} {
		if out, said, code := at.steer(t, "drain", newer.name); code != 0 {
			t.Errorf("drain at %s: %d %s%s", at.name, code, out, said)
		}
		awaited(t, newer.name+" drains", func() bool { return m.front.away[2].Load() })
		if out, said, code := older.steer(t, "drain", newer.name, "--undo"); code != 0 {
			t.Errorf("drain --undo at %s: %d %s%s", older.name, code, out, said)
		}
		awaited(t, newer.name+" no longer drains", func() bool { return !m.front.away[2].Load() })
	}
}

// tasks sees that a task that a newer node has made for its client is refused in words by an older one, and found by its own; and one of an
// older node by both.
func (m *mixture) tasks(t *testing.T, older, newer *node) {
	t.Helper()
	at := func(n *node) *mcp.Session {
		s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}}).Dial(t.Context(), n.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	there, here := at(older), at(newer)
	for _, begin := range []*mcp.Session{there, here} {
		task, err := begin.StartTask(t.Context(), "ledger_later", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, find := range []*mcp.Session{there, here} {
			res, err := find.Task(task.ID).Wait(t.Context())
			if begin == here && find == there {
				if err == nil || !strings.Contains(err.Error(), "tasks of other gateways are not found at the moment; try again") {
					t.Errorf("a task of a newer node, at an older one: %v, %v", res, err)
				}
				older.stderr.await(t, `task\.id\.\w+ has format 2, this node knows 1: update this node`)
			} else if err != nil || res.Text() != "done later" {
				t.Errorf("a task: %v, %v", res, err)
			}
		}
	}
}

// asks sees that questions of calls, which are asked at one node and answered at the next one, are answered.
func (m *mixture) asks(t *testing.T) {
	t.Helper()
	for _, r := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		s := m.front.client(t, r)
		for range 3 {
			if res, err := s.CallTool(t.Context(), "asking_ask", nil); err != nil || res.Text() != "Thursday" {
				t.Errorf("%s: a question: %v, %v", r, res, err)
			}
		}
	}
}

// refuses sees that an older node says of a session of a newer one that has ended what it cannot do.
func (n *node) refuses(t *testing.T, v *roamer) {
	t.Helper()
	awaited(t, n.name+" refuses a session of a newer node that has ended", func() bool {
		ok, said := v.does(t, n)
		if ok {
			t.Fatalf("%s goes on with a session of a newer node: %s", n.name, said)
		}
		return strings.HasPrefix(said, "503 ") && strings.Contains(said, newerSession)
	})
}

// killed sees that sessions of a newer node are answered at the older ones, which do not take them when that node is killed, but leave
// them to it.
func (m *mixture) killed(t *testing.T, older []*node, newer *node) {
	t.Helper()
	first, second := visit(t, newer), visit(t, older[1])
	first.goesOn(t, "a session of a newer node", m.nodes)
	second.goesOn(t, "a session of an older node", m.nodes)
	newer.cmd.Process.Kill()
	newer.cmd.Wait()
	for _, n := range older {
		n.refuses(t, first)
	}
	second.goesOn(t, "a session of an older node, without the newer one", older)
	newer.as(t, m.newer)
	newer.begin(t)
	newer.serves(t)
	newer.goesOnWith(t, first)
	first.goesOn(t, "a session of a newer node that has begun again", m.nodes)
	m.ready(t, newer)
}

// taken sees that a session of a newer node that is killed goes on at another newer node, to which the older one forwards then.
func (m *mixture) taken(t *testing.T, older, dies, takes *node) {
	t.Helper()
	v := visit(t, dies)
	dies.cmd.Process.Kill()
	dies.cmd.Wait()
	older.refuses(t, v)
	takes.goesOnWith(t, v)
	v.goesOn(t, "a session that a newer node has taken", []*node{older, takes})
	dies.as(t, m.newer)
	dies.begin(t)
	dies.serves(t)
	m.ready(t, takes)
}

// goesOnWith waits until a node that has begun again goes on with a session.
func (n *node) goesOnWith(t *testing.T, v *roamer) {
	t.Helper()
	awaited(t, n.name+" goes on with a session", func() bool {
		ok, _ := v.does(t, n)
		return ok
	})
}

// stopped sees that a node of the older version which was stopped comes back, although a newer one has taken its session.
func (m *mixture) stopped(t *testing.T, older, newer *node) {
	t.Helper()
	v := visit(t, older)
	v.goesOn(t, "a session of an older node", m.nodes)
	older.cmd.Process.Signal(syscall.SIGSTOP)
	defer older.cmd.Process.Signal(syscall.SIGCONT)
	newer.goesOnWith(t, v)
	older.cmd.Process.Signal(syscall.SIGCONT)
	awaited(t, older.name+" is back", func() bool { return roamer{}.served(t, older) })
	v.goesOn(t, "a session that a newer node has taken", m.nodes)
	m.ready(t, newer)
}

// served reports whether a session can be opened and used at a node.
func (v roamer) served(t *testing.T, at *node) bool {
	status, _ := v.ask(t, at, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"visitor","version":"1"}}`)
	if status != http.StatusOK {
		return false
	}
	ok, _ := v.does(t, at)
	return ok
}

// begunByNewer sees that an older program refuses to become a node of newer ones, and to write on in the log of a newer one, in words, and
// changes nothing.
func begunByNewer(t *testing.T, newer string) {
	m := &mixture{book: &ledger{path: filepath.Join(t.TempDir(), "ledger")}, newer: newer}
	m.nodes = threeNodes(t, map[string]any{"ledger": map[string]any{"url": m.book.serve(t)}})
	for _, n := range m.nodes {
		n.cmd.Path = newer
		n.begin(t)
	}
	for _, n := range m.nodes {
		n.serves(t)
	}
	v, last := visit(t, m.nodes[0]), m.nodes[2]
	v.goesOn(t, "a session", m.nodes)
	last.end(t)
	log := filepath.Join(filepath.Dir(last.cmd.Args[3]), last.name+".jsonl")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(code int, words string) {
		t.Helper()
		last.as(t, "")
		last.begin(t)
		err := last.cmd.Wait()
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(last.stderr.String(), words) {
			t.Errorf("an older program: %v, without the words %q: %s", err, words, last.stderr)
		}
	}
	refuses(exitUsage, "was written by a newer version (format 2, this one knows 1); upgrade")
	if after, err := os.ReadFile(log); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the log had %d bytes, and has %d, %v", len(before), len(after), err)
	}
	away, err := filepath.Glob(strings.TrimSuffix(log, ".jsonl") + ".jsonl*")
	if err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	for _, path := range away {
		if err := os.Rename(path, filepath.Join(kept, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	refuses(exitLocal, fmt.Sprintf("gateway.keys has format 2, which patchbay %s does not know: update this node", Version))
	v.goesOn(t, "a session", m.nodes[:2])
	last.as(t, newer)
	last.begin(t)
	last.serves(t)
	v.goesOn(t, "a session", m.nodes)
	m.ready(t, last)
}
