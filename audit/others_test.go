package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// logNode is a node with a log that others note.
type logNode struct {
	name, path string
	key        ed25519.PrivateKey
	log        *audit.Log
	others     *audit.Others
	said       *said
	end        func()
}

// said collects what a node logs.
type said struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// bus hands messages on to all nodes that run.
type bus struct {
	mu    sync.Mutex
	nodes []*logNode // guarded by mu
	sent  [][]byte   // guarded by mu
	max   int64      // of the files of their logs
}

func (b *bus) publish(_ context.Context, m []byte) error {
	b.mu.Lock()
	nodes := slices.Clone(b.nodes)
	b.sent = append(b.sent, bytes.Clone(m))
	b.mu.Unlock()
	for _, n := range nodes {
		n.others.Receive(m)
	}
	return nil
}

// start opens the log of a node, and lets it publish and note.
func (b *bus) start(t *testing.T, dir, name string, key ed25519.PrivateKey) *logNode {
	t.Helper()
	n := &logNode{name: name, path: filepath.Join(dir, name+".jsonl"), key: key, said: new(said)}
	var err error
	n.log, err = audit.Open(n.path, &audit.Options{Key: key, Node: name, Sync: audit.SyncNone, MaxBytes: b.max, Logger: slog.New(slog.NewTextHandler(n.said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	n.others = &audit.Others{Log: n.log, Publish: b.publish}
	b.mu.Lock()
	b.nodes = append(b.nodes, n)
	b.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.others.Run(ctx) })
	n.end = func() {
		b.mu.Lock()
		b.nodes = slices.DeleteFunc(b.nodes, func(other *logNode) bool { return other == n })
		b.mu.Unlock()
		stop()
		running.Wait()
		if err := n.log.Close(); err != nil {
			t.Error(err)
		}
	}
	return n
}

// write writes lines of calls.
func (n *logNode) write(t *testing.T, lines int) {
	t.Helper()
	for i := range lines {
		e := audit.Entry{Kind: audit.CallEnd, Call: fmt.Sprint(n.name, "-", i), Server: &audit.Server{Name: "jira"}, Tool: "create", Outcome: "ok"}
		if err := n.log.Write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// noted returns the lines about other nodes in a log, as "NODE SEQ".
func (n *logNode) noted(t *testing.T) (list []string) {
	t.Helper()
	files, err := audit.Files(n.path)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range audit.Read(files...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != audit.CheckpointOther {
			continue
		}
		var of struct {
			Node string
			Seq  int64
		}
		if err := json.Unmarshal(e.Detail, &of); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(of.Node, " ", of.Seq))
	}
	return list
}

func nodeLog(t *testing.T, n *logNode) audit.NodeLog {
	t.Helper()
	files, err := audit.Files(n.path)
	if err != nil {
		t.Fatal(err)
	}
	return audit.NodeLog{Files: files, Options: &audit.VerifyOptions{Key: n.key.Public().(ed25519.PublicKey)}}
}

// together verifies the logs of nodes.
func together(t *testing.T, o *audit.TogetherOptions, nodes ...*logNode) []*audit.Report {
	t.Helper()
	var logs []audit.NodeLog
	for _, n := range nodes {
		logs = append(logs, nodeLog(t, n))
	}
	reports, err := audit.VerifyTogether(logs, o)
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// faults returns the faults of all reports.
func faults(reports []*audit.Report) (list []audit.Fault) {
	for _, r := range reports {
		list = append(list, r.Faults...)
	}
	return list
}

// Three nodes note each other's checkpoints: at most one of a node in an interval, and none while nothing is called.
func TestOthersNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		var nodes []*logNode
		for _, name := range []string{"n1", "n2", "n3"} {
			nodes = append(nodes, b.start(t, dir, name, testKey(t)))
		}
		time.Sleep(90 * time.Second)
		for _, n := range nodes {
			if got := n.noted(t); len(got) != 2 {
				t.Errorf("%s has noted %q after the start", n.name, got)
			}
		}
		time.Sleep(time.Hour)
		for _, n := range nodes {
			if got := n.noted(t); len(got) != 2 {
				t.Errorf("%s has noted %q in an hour without calls", n.name, got)
			}
		}
		for range 30 {
			nodes[0].write(t, 20)
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		if got := len(nodes[0].noted(t)); got != 2 {
			t.Errorf("n1 has noted %d checkpoints, of which there were 2", got)
		}
		if got := len(nodes[1].noted(t)); got < 2+5 || got > 2+8 {
			t.Errorf("n2 has noted %d checkpoints of a minute of calls at n1, and 2 before", got)
		}
		// a node that starts learns the last checkpoints
		late := b.start(t, dir, "n4", testKey(t))
		nodes = append(nodes, late)
		time.Sleep(2 * time.Minute)
		if got := late.noted(t); len(got) != 3 {
			t.Errorf("a node that has begun later has noted %q", got)
		}
		for _, n := range nodes {
			n.end()
		}
		for i, r := range together(t, nil, nodes...) {
			if !r.Whole() || r.Agreed == 0 || len(r.Notes) > 0 {
				t.Errorf("%s: %+v", nodes[i].name, r)
			}
			if said := nodes[i].said.String(); said != "" {
				t.Errorf("%s says %s", nodes[i].name, said)
			}
		}
	})
}

// A node without a key notes the others, and is not noted.
func TestOthersWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		one, two := b.start(t, dir, "n1", nil), b.start(t, dir, "n2", testKey(t))
		time.Sleep(time.Minute)
		if got, other := one.noted(t), two.noted(t); len(got) != 1 || len(other) != 0 {
			t.Errorf("n1 has noted %q, n2 %q", got, other)
		}
		one.end()
		two.end()
	})
}

// Messages that are not checkpoints, or come in floods, do not fill the log.
func TestOthersFlood(t *testing.T) {
	long.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		one, two := b.start(t, dir, "n1", testKey(t)), b.start(t, dir, "n2", testKey(t))
		time.Sleep(10500 * time.Millisecond)
		b.mu.Lock()
		good := string(b.sent[slices.IndexFunc(b.sent, func(m []byte) bool { return bytes.Contains(m, []byte(`"n2"`)) })])
		b.mu.Unlock()
		changed := func(old, with string) string {
			if !strings.Contains(good, old) {
				t.Fatalf("%s has no %s", good, old)
			}
			return strings.Replace(good, old, with, 1)
		}
		for _, tt := range []struct{ message, want string }{
			{"", "unexpected end"}, {"null", "format 0"}, {"[]", "array"}, {"{}", "format 0"}, {good + good, "after top-level value"}, {strings.Repeat(" ", 2<<10) + good, "the maximum is 2 KiB"},
			{changed(`"format":1`, `"format":2`), "has format 2; this program knows 1"},
			{changed(`"node":"n2"`, `"node":""`), "names that cannot be"},
			{changed(`"node":"n2"`, `"node":"n2\u001b"`), "names that cannot be"},
			{changed(`"node":"n2"`, `"node":"`+strings.Repeat("n", 300)+`"`), "names that cannot be"},
			{changed(`"node":"n2"`, `"node":"n3"`), "its signature is wrong"},
			{changed(`"log":"`, `"log":"\u202e`), "names that cannot be"},
			{changed(`"seq":`, `"seq":-`), "is not a checkpoint"},
			{changed(`"seq":`, `"seq":7`), "its signature is wrong"},
			{changed(`"hash":"sha256:`, `"hash":"sha512:`), "is not a checkpoint"},
			{changed(`"hash":"sha256:`, `"hash":"sha256:0`), "is not a checkpoint"},
			{changed(`"public":"`, `"public":"AAAA`), "is not a checkpoint"},
			{changed(`"key":"`, `"key":"0`), "it is signed with another key"},
		} {
			time.Sleep(time.Minute)
			before := len(one.said.String())
			one.others.Receive([]byte(tt.message))
			if said := one.said.String()[before:]; !strings.Contains(said, "are ignored") || !strings.Contains(said, tt.want) {
				t.Errorf("%.100s: the node says %q, want %q", tt.message, said, tt.want)
			}
		}
		if got := one.noted(t); len(got) != 1 {
			t.Errorf("rubbish was noted: %q", got)
		}

		// somebody with a key signs checkpoints under many names, and under that of n2, as fast as can be
		forger := testKey(t)
		forged := func(node string, seq int64) []byte {
			return forge(t, forger, node, seq)
		}
		time.Sleep(time.Minute)
		before, agreed := len(one.noted(t)), together(t, nil, one, two)[1].Agreed
		for second := range 60 {
			two.write(t, 1)
			for i := range 240 {
				if i%120 == 0 { // before and after n2 itself
					time.Sleep(time.Second / 2)
				}
				one.others.Receive(forged([]string{"n2", fmt.Sprint("x", i)}[i%2], int64(240*second+i+1)))
			}
		}
		got := one.noted(t)[before:]
		if of := count(got, "n2 "); of < 5 || of > 7 {
			t.Errorf("n2 was noted %d times in a minute: %q", of, got)
		}
		if len(got) > 7*100 {
			t.Errorf("%d checkpoints were noted in a minute", len(got))
		}
		if got := together(t, nil, one, two)[1].Agreed - agreed; got < 3 {
			t.Errorf("%d checkpoints of n2 itself were noted in a minute", got)
		}
		if said := one.said.String(); !strings.Contains(said, "too many messages in a second") {
			t.Errorf("n1 says %s", said)
		}
		one.end()
		two.end()
	})
}

func count(list []string, prefix string) (n int) {
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// forge returns a message that is signed with a key.
func forge(t *testing.T, key ed25519.PrivateKey, node string, seq int64) []byte {
	t.Helper()
	hash := audit.Digest(json.RawMessage(fmt.Sprint(seq)))
	public := key.Public().(ed25519.PublicKey)
	m, err := json.Marshal(map[string]any{
		"format": 1, "node": node, "seq": seq, "hash": hash, "key": audit.KeyID(public), "public": []byte(public), "time": time.Now(), "log": "0123456789abcdef",
		"signature": ed25519.Sign(key, fmt.Appendf(nil, "patchbay audit checkpoint\n%s\n%d\n%s\n", node, seq, hash)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Only nodes that are known are noted. While it cannot be said which are, a checkpoint waits.
func TestOthersKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		one := b.start(t, dir, "n1", testKey(t))
		one.end()
		var away atomic.Bool
		var asked atomic.Int64
		away.Store(true)
		var said strings.Builder // guarded by the handler
		one.log, _ = audit.Open(one.path, &audit.Options{Key: one.key, Node: "n1", Sync: audit.SyncNone, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		o := &audit.Others{Log: one.log, Publish: b.publish, Known: func(_ context.Context, node string) (bool, error) {
			asked.Add(1)
			if away.Load() {
				return false, errors.New("away")
			}
			return node == "n2", nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { o.Run(ctx) })
		o.Receive(forge(t, testKey(t), "n2", 7))
		o.Receive(forge(t, testKey(t), "n3", 7))
		time.Sleep(time.Minute)
		if got := one.noted(t); len(got) != 0 {
			t.Errorf("noted while the cluster is away: %q", got)
		}
		away.Store(false)
		time.Sleep(time.Minute)
		if got := one.noted(t); !slices.Equal(got, []string{"n2 7"}) {
			t.Errorf("noted %q", got)
		}
		before := asked.Load()
		o.Receive(forge(t, testKey(t), "n2", 8))
		time.Sleep(time.Minute)
		if asked.Load() != before {
			t.Error("a node that is known is asked about again")
		}
		stop()
		running.Wait()
		if err := one.log.Close(); err != nil {
			t.Error(err)
		}
		if got := said.String(); strings.Count(got, "are ignored") != 1 || !strings.Contains(got, `node \"n3\" is not in the cluster`) {
			t.Errorf("it says %q", got)
		}
	})
}

// A node says at once that the log of another one went back, has another id or another key.
func TestOthersGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		one, two := b.start(t, dir, "n1", testKey(t)), b.start(t, dir, "n2", testKey(t))
		two.write(t, 100)
		time.Sleep(time.Minute)
		two.end()
		rewritten(t, two, 50)
		again := b.start(t, dir, "n2", two.key)
		time.Sleep(time.Minute)
		if said := one.said.String(); !strings.Contains(said, "audit log of another node went back: it was cut or replaced") {
			t.Errorf("after a cut, n1 says %q", said)
		}
		again.end()
		rewritten(t, two, 1)
		again = b.start(t, dir, "n2", two.key)
		time.Sleep(time.Minute)
		if said := one.said.String(); !strings.Contains(said, "another node has begun another audit log") {
			t.Errorf("after another log, n1 says %q", said)
		}
		again.end()
		again = b.start(t, dir, "n2", testKey(t))
		time.Sleep(time.Minute)
		if said := one.said.String(); !strings.Contains(said, "another key signs the audit log of another node") {
			t.Errorf("after another key, n1 says %q", said)
		}
		again.end()
		one.end()
	})
}

// rewritten writes a log anew from a line on, with the key of its node: somebody has the machine.
func rewritten(t *testing.T, n *logNode, from int64) {
	t.Helper()
	files, err := audit.Files(n.path)
	if err != nil {
		t.Fatal(err)
	}
	var keep [][]byte
	for e, err := range audit.Read(files...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq < from {
			keep = append(keep, slices.Concat(e.Line(), []byte("\n")))
		}
	}
	for _, name := range append(files, n.path+".head") {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(n.path, bytes.Join(keep, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// In one of three logs the end is cut off, written anew, or exchanged for another log, by somebody who has its key. The other two
// tell, and name the place.
func TestTogether(t *testing.T) {
	key := testKey(t)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range long.Or(48, 8) {
		synctest.Test(t, func(t *testing.T) {
			b, dir := &bus{max: 8 << 10}, t.TempDir()
			var nodes []*logNode
			for _, name := range []string{"n1", "n2", "n3"} {
				nodes = append(nodes, b.start(t, dir, name, key))
			}
			for range 8 {
				for _, n := range nodes {
					n.write(t, 1+r.IntN(10))
				}
				time.Sleep(time.Duration(5+r.IntN(20)) * time.Second)
			}
			time.Sleep(time.Minute)
			for _, n := range nodes {
				n.end()
			}
			whole := together(t, nil, nodes...)
			if found := faults(whole); len(found) > 0 {
				t.Fatalf("logs as they were written have faults: %v", found)
			}
			at := r.IntN(3)
			victim := nodes[at]
			last := int64(0) // line of it that others have noted
			for i, n := range nodes {
				if i == at {
					continue
				}
				for _, one := range n.noted(t) {
					var seq int64
					if _, err := fmt.Sscanf(one, victim.name+" %d", &seq); err == nil {
						last = max(last, seq)
					}
				}
			}
			from := 3 + r.Int64N(last-2) // behind the first checkpoint, and at most the last line that was noted
			what := []string{"cut", "fork", "another log", "another node"}[round%4]
			switch what {
			case "cut":
				rewritten(t, victim, from)
			case "fork":
				rewritten(t, victim, from)
				l, err := audit.Open(victim.path, &audit.Options{Key: key, Node: victim.name, Sync: audit.SyncNone})
				if err != nil {
					t.Fatal(err)
				}
				victim.log = l
				victim.write(t, 300)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			case "another log", "another node":
				rewritten(t, victim, 1)
				name := victim.name
				if what == "another node" {
					name = "n9"
				}
				l, err := audit.Open(victim.path, &audit.Options{Key: key, Node: name, Sync: audit.SyncNone})
				if err != nil {
					t.Fatal(err)
				}
				victim.log = l
				victim.write(t, 300)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			reports := together(t, nil, nodes...)
			alone := nodeLog(t, victim)
			if r := verify(t, alone.Options, alone.Files...); what != "fork" && !r.Whole() {
				t.Errorf("%s: it is found alone: %v", what, r.Faults)
			}
			var kinds []string
			for i, rep := range reports {
				for _, f := range rep.Faults {
					kinds = append(kinds, fmt.Sprint(i, " ", f.Kind))
					if strings.Count(f.Text, ".jsonl:") == 0 && f.Kind != audit.NotGiven {
						t.Errorf("%s of %s: the fault has no other place: %v", what, victim.name, f)
					}
					if i == at && what != "another log" && f.Kind != audit.NotGiven && (f.Seq < from || f.Seq > last) {
						t.Errorf("%s of %s at line %d of %d: %v", what, victim.name, from, last, f)
					}
				}
			}
			want := map[string]string{"cut": fmt.Sprint(at, " cut"), "fork": fmt.Sprint(at, " replaced"), "another log": fmt.Sprint(at, " replaced"), "another node": " not given"}[what]
			if len(kinds) == 0 || !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasSuffix(k, want) }) {
				t.Errorf("%s of %s at line %d of %d: the faults are %q, want %q", what, victim.name, from, last, kinds, want)
			}
		})
	}
}

// Older files may be gone, copies may be older than others, and logs may be left out on purpose: none of that is a fault.
func TestTogetherLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := &bus{max: 8 << 10}, t.TempDir()
		var nodes []*logNode
		for _, name := range []string{"n1", "n2", "n3"} {
			nodes = append(nodes, b.start(t, dir, name, testKey(t)))
		}
		var copied time.Time
		var early []byte
		for i := range 10 {
			for _, n := range nodes {
				n.write(t, 8)
			}
			if time.Sleep(20 * time.Second); i == 5 {
				files, err := audit.Files(nodes[1].path)
				if err != nil {
					t.Fatal(err)
				}
				for e, err := range audit.Read(files...) {
					if err != nil {
						t.Fatal(err)
					}
					early = append(append(early, e.Line()...), '\n')
				}
				copied = time.Now()
			}
		}
		for _, n := range nodes {
			n.end()
		}
		if found := faults(together(t, nil, nodes...)); len(found) > 0 {
			t.Fatal(found)
		}
		if found := faults(together(t, nil, nodes[0], nodes[1])); len(found) != 2 || found[0].Kind != audit.NotGiven || !strings.Contains(found[0].Text, `node "n3"`) {
			t.Errorf("without n3: %v", found)
		}
		if found := faults(together(t, &audit.TogetherOptions{Without: []string{"n3"}}, nodes[0], nodes[1])); len(found) > 0 {
			t.Errorf("without n3 on purpose: %v", found)
		}
		id := together(t, nil, nodes...)[2].Log
		if found := faults(together(t, &audit.TogetherOptions{Without: []string{id}}, nodes[0], nodes[1])); len(found) > 0 {
			t.Errorf("without the log of n3 on purpose: %v", found)
		}

		logs := []audit.NodeLog{nodeLog(t, nodes[0]), nodeLog(t, nodes[1]), nodeLog(t, nodes[2])}
		older := filepath.Join(t.TempDir(), "n2.jsonl")
		if err := os.WriteFile(older, early, 0o600); err != nil {
			t.Fatal(err)
		}
		all := logs[1].Files
		logs[1].Files = []string{older}
		reports, err := audit.VerifyTogether(logs, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found := faults(reports); len(found) != 2 || found[0].Kind != audit.Cut || found[0].File != older {
			t.Errorf("an older copy of n2: %v", found)
		}
		if reports, err = audit.VerifyTogether(logs, &audit.TogetherOptions{Copied: copied}); err != nil {
			t.Fatal(err)
		}
		if found := faults(reports); len(found) > 0 || !strings.Contains(fmt.Sprint(reports[1].Notes), "newer than the log") {
			t.Errorf("an older copy of n2, with its time: %v, %v", found, reports[1].Notes)
		}

		logs[1].Files = all[2:]
		if reports, err = audit.VerifyTogether(logs, nil); err != nil {
			t.Fatal(err)
		}
		if found := faults(reports); len(found) > 0 || !strings.Contains(fmt.Sprint(reports[1].Notes), "older than the log") || reports[1].Agreed == 0 {
			t.Errorf("without the oldest files of n2: %v, %v, %d", found, reports[1].Notes, reports[1].Agreed)
		}
	})
}

// A checkpoint under the name of another node, with another key, does not say that the log of that node was changed.
func TestTogetherForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dir := new(bus), t.TempDir()
		one, two := b.start(t, dir, "n1", testKey(t)), b.start(t, dir, "n2", testKey(t))
		two.write(t, 10)
		time.Sleep(90 * time.Second)
		id := together(t, nil, one, two)[1].Log
		forged := bytes.Replace(forge(t, testKey(t), "n2", 5), []byte("0123456789abcdef"), []byte(id), 1)
		one.others.Receive(forged)
		time.Sleep(time.Minute)
		one.end()
		two.end()
		found := faults(together(t, nil, one, two))
		if len(found) != 1 || found[0].Seq != 5 || !strings.Contains(found[0].Text, "which is not given for this log: another program has used the name of the node") {
			t.Errorf("%v", found)
		}
		logs := []audit.NodeLog{nodeLog(t, one), nodeLog(t, two)}
		logs[1].Options = nil
		reports, err := audit.VerifyTogether(logs, nil)
		if err != nil || len(faults(reports)) != 1 || !strings.Contains(faults(reports)[0].Text, "with the public key of this log it can be said which one") {
			t.Errorf("without the key: %v, %v", faults(reports), err)
		}
	})
}
