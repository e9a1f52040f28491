package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
)

// server returns a server of NATS.
func server(t *testing.T) *nats.Server {
	t.Helper()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "nats", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// member returns a node that has not announced itself, of a cluster in a server of NATS.
func member(t *testing.T, s *nats.Server, node string) *Member {
	t.Helper()
	conn, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	shared, err := nats.Open(t.Context(), conn, nats.Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.Close() })
	return &Member{
		options: Options{Cluster: &deploy.Cluster{Name: "c", Node: node}, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)},
		node:    &cluster.Node{Name: node, State: shared, Bus: shared, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)},
		shared:  shared, begun: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// All nodes have the keys of tasks of the first, also after the State has lost them, and after all have ended.
func TestTaskKeys(t *testing.T) {
	t.Parallel()
	s := server(t)
	ctx := t.Context()
	begin := func(name string) *Member {
		t.Helper()
		m := member(t, s, name)
		if err := m.announce(ctx); err != nil {
			t.Fatal(err)
		}
		return m
	}
	one, two := begin("n1"), begin("n2")
	if len(one.TaskKeys()) != 1 || len(one.TaskKeys()[0]) != 32 || !bytes.Equal(one.TaskKeys()[0], two.TaskKeys()[0]) {
		t.Fatalf("the keys are %x and %x", one.TaskKeys(), two.TaskKeys())
	}
	for _, key := range []string{keysKey, nodesKey + ".n1"} {
		if err := one.remove(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if !one.lost(ctx) {
		t.Error("the loss is not seen")
	}
	for _, m := range []*Member{one, two} {
		if err := m.forget(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if three := begin("n3"); len(three.TaskKeys()) != 1 || !bytes.Equal(three.TaskKeys()[0], one.TaskKeys()[0]) {
		t.Errorf("then %x, after %x", three.TaskKeys(), one.TaskKeys())
	}
}

// One node at a time has an exclusive server.
func TestLock(t *testing.T) {
	t.Parallel()
	s := server(t)
	const server = "a server: of 100 % any/name"
	held, err := member(t, s, "n1").Lock()(t.Context(), server)
	if err != nil || !held.HeldFor(time.Second) {
		t.Fatal(held, err)
	}
	two := member(t, s, "n2").Lock()
	short, stop := context.WithTimeout(t.Context(), time.Second/2)
	defer stop()
	if _, err := two(short, server); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside the other node: %v", err)
	}
	if other, err := two(t.Context(), "another"); err != nil {
		t.Error(err)
	} else if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if held, err = two(t.Context(), server); err != nil {
		t.Error(err)
	} else if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node refuses keys in a format that it does not know, and lists a node that writes one with a warning.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := member(t, s, "n1")
	raw, err := json.Marshal(ring{Format: format + 1, Keys: [][]byte{make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.shared.Put(t.Context(), keysKey, raw, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.announce(t.Context()); err == nil || !strings.Contains(err.Error(), "gateway.keys has format 2, which patchbay 1.2.3 does not know: update this node") {
		t.Errorf("keys of a newer version: %v", err)
	}
	if m.TaskKeys() != nil {
		t.Errorf("the keys are %x", m.TaskKeys())
	}
}

// A node whose name another one has waits, and does not take its place in the list.
func TestNameInUse(t *testing.T) {
	t.Parallel()
	s := server(t)
	one, two := member(t, s, "n1"), member(t, s, "n1")
	if err := one.announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := one.node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer one.node.Leave(context.Background())
	before, err := one.shared.Get(t.Context(), nodesKey+".n1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := two.announce(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another node of that name: %v", err)
	}
	if after, err := one.shared.Get(t.Context(), nodesKey+".n1"); err != nil || after.Version != before.Version {
		t.Errorf("the entry of the first has version %d, was %d; %v", after.Version, before.Version, err)
	}
}

// A node whose port takes connections answers callers while it joins the others, and serves none before its servers have begun.
func TestServeWhileJoining(t *testing.T) {
	t.Parallel()
	s := server(t)
	before := member(t, s, "n1") // has the name
	if err := before.node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	type serving struct {
		*Member
		url   string
		ended chan error // of Serve
	}
	var started atomic.Int32
	serve := func(ctx context.Context) serving {
		m := member(t, s, "n1")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "started"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint(started.Load()), nil })
		e := listen.New(srv, l, listen.Options{Log: slog.New(slog.DiscardHandler)})
		health.Handle(e.Mux, health.OverGuarded, srv, func() *health.Report {
			r := &health.Report{State: health.Ready}
			m.Report(r)
			return r
		})
		out := serving{m, e.URL, make(chan error, 1)}
		go func() {
			_, err := m.Serve(ctx, e, func() About { return About{} }, nil, func() {
				time.Sleep(200 * time.Millisecond) // requests that wait for the node come now
				started.Add(1)
			})
			out.ended <- err
		}()
		t.Cleanup(func() { m.Leave(context.Background()); e.End(context.Background(), 0) })
		return out
	}
	call := func(url string) string {
		session, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2026_07_28}}).Dial(t.Context(), url)
		if err != nil {
			return err.Error()
		}
		defer session.Close()
		res, err := session.CallTool(t.Context(), "started", nil)
		if err != nil {
			return err.Error()
		}
		return res.Text()
	}
	said := func(res *http.Response, err error) string {
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body))
	}
	ready := func(url string) string { return said(http.Get(strings.TrimSuffix(url, listen.Path) + "/readyz")) }
	const words = "this node has not joined the others yet"

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	gone := serve(ctx)
	begin := time.Now()
	if said := said(http.Post(gone.url, "application/json", strings.NewReader("{}"))); !strings.HasPrefix(said, "503 ") || !strings.Contains(said, words) || time.Since(begin) > 5*time.Second {
		t.Errorf("while it joins, after %v: %s", time.Since(begin), said)
	}
	if said := ready(gone.url); !strings.HasPrefix(said, "503 ") || !strings.Contains(said, `"starting"`) || !strings.Contains(said, words) {
		t.Errorf("/readyz while it joins: %s", said)
	}
	stop()
	if err := <-gone.ended; err == nil || !strings.Contains(err.Error(), "cluster c: node n1: ") {
		t.Errorf("a node that was ended while it joins: %v", err)
	}
	if said := ready(gone.url); !strings.Contains(said, "connect") { // refused
		t.Errorf("its port then: %s", said)
	}

	next := serve(t.Context())
	answered := make(chan string, 1)
	go func() { answered <- call(next.url) }()
	time.Sleep(time.Second / 2)
	before.node.Leave(t.Context())
	if said := <-answered; said != "1" { // not 0, and not started by the one before
		t.Errorf("a call that came before the node had joined: %s", said)
	}
	if err := <-next.ended; err != nil {
		t.Fatal(err)
	}
	if said := ready(next.url); !strings.HasPrefix(said, "200 ") || strings.Contains(said, words) {
		t.Errorf("/readyz of a node that has joined: %s", said)
	}
}

// A wait says which nodes do not answer; this one is not among them.
func TestMissing(t *testing.T) {
	t.Parallel()
	s, err := nats.Start(nats.ServerOptions{Cluster: "c", Node: "n1", Dir: t.TempDir(), Listen: "127.0.0.1:0", Routes: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	own := s.Addr().String()
	c := &deploy.Cluster{NATS: deploy.Embedded, Listen: own, Routes: []string{own, "127.0.0.1:1", "127.0.0.1:2"}}
	m := &Member{options: Options{Cluster: c}}
	if got := m.missing(t.Context()); got != "a majority of 3 nodes (at the first start of a cluster, for three): 127.0.0.1:1, 127.0.0.1:2 do not answer" {
		t.Errorf("missing = %q", got)
	}
	c.Routes = c.Routes[1:2]
	if got := m.missing(t.Context()); got != "a majority of 2 nodes (at the first start of a cluster, for three): 127.0.0.1:1 does not answer" {
		t.Errorf("without its own address: %q", got)
	}
	c.Routes = []string{own}
	if got := m.missing(t.Context()); !strings.Contains(got, "names this one alone") {
		t.Errorf("with its own address alone: %q", got)
	}
	c.NATS = "tls://ada:secret@nats:4222"
	if got := m.missing(t.Context()); got != "JetStream of tls://nats:4222" {
		t.Errorf("NATS elsewhere: %q", got)
	}
}

// A text that a server of NATS repeats about a node that is not let in is logged once in a while, with the member of gateway.yaml that is wrong, also by
// the words about what a start waits for.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		m := &Member{options: Options{Cluster: &deploy.Cluster{NATS: deploy.Embedded}}}
		log := slog.New(quiet{slog.NewTextHandler(&out, nil), &m.hints})
		for range 10 {
			log.Error("nats: 127.0.0.1:1 - rid:5 - Route Error 'Authorization Violation'")
			log.Warn("nats: Error trying to connect to route (attempt 1)")
		}
		if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "cluster.secret") {
			t.Errorf("%d lines are said: %s", n, out.String())
		}
		if list := m.hints.last(); len(list) != 1 || !strings.Contains(list[0], "cluster.secret") {
			t.Errorf("the hints are %q", list)
		}
		time.Sleep(hintTime + time.Second)
		if list := m.hints.last(); len(list) > 0 {
			t.Errorf("after a while the hints are %q", list)
		}
		if log.Error("nats: Route Error 'Authorization Violation'"); strings.Count(out.String(), "\n") != 2 {
			t.Error("what goes on is not said again")
		}
	})
}

// Nodes whose policies or keys differ are told apart, not only those with another gateway.yaml or mcp.json.
func TestDiffer(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := &deploy.File{Path: write("gateway.yaml", "x"), Policy: write("policy.yaml", "a"), Auth: []string{"apikeys:keys.jsonl,roles=r", "basic:none", "apikeys:" + write("more.jsonl", "1")}}
	write("keys.jsonl", "1")
	nodes := map[string]Files{"n1": Read(f, ""), "n2": Read(f, "")}
	if got := differ(nodes); len(got) > 0 {
		t.Errorf("equal nodes differ: %q", got)
	}
	write("policy.yaml", "b")
	nodes["n3"] = Read(f, "")
	write("keys.jsonl", "2")
	nodes["n2"] = Read(f, "")
	write("more.jsonl", "2")
	if again := Read(f, ""); again == nodes["n2"] {
		t.Error("a file with an absolute path is not read")
	}
	if got, want := differ(nodes), []string{"the nodes have different policies: n1 | n2, n3", "the nodes have different files of auth: n1, n3 | n2"}; !slices.Equal(got, want) {
		t.Errorf("differ = %q, want %q", got, want)
	}
}
