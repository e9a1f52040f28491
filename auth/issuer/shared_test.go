package issuer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/cluster"
)

// broken is a State that does not answer for a while.
type broken struct {
	*cluster.Memory
	down atomic.Bool
}

func (b *broken) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if b.down.Load() {
		return cluster.Entry{}, errors.New("no majority")
	}
	return b.Memory.Get(ctx, key)
}

// newNodes returns a world with Servers that share a State and take requests in turn.
func newNodes(t *testing.T, n int, state cluster.State, dir string) *world {
	t.Helper()
	var w *world
	for i := range n {
		one := newWorld(t, func(s *issuer.Server) {
			s.State, s.Dir = state, filepath.Join(dir, fmt.Sprint(i))
			if w != nil {
				s.Base, s.Logger = w, w.server.Logger
			}
		})
		if w == nil {
			w = one
		}
		w.nodes = append(w.nodes, one.server)
	}
	return w
}

// knocks sees that each node takes a token, or refuses it soon.
func (w *world) knocks(what, token string, want int) {
	w.Helper()
	for i := range w.nodes {
		status := 0
		for end := time.Now().Add(time.Minute); status != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
			w.turn = i
			_, status = w.knock(token, resourceURL)
		}
		if status != want {
			w.Errorf("%s: HTTP %d, want %d", what, status, want)
		}
	}
}

// People log in at several Servers with one State as at one: each request of a browser and of a host may come to another.
func TestNodes(t *testing.T) {
	state, dir := &broken{Memory: new(cluster.Memory)}, t.TempDir()
	w := newNodes(t, 3, state, dir)
	h, b := w.register(nil), w.browser()
	access, refresh := h.tokens(b)
	w.knocks("a new token", access, http.StatusOK)
	first := refresh
	for n := range 7 {
		status, got := h.refresh(refresh)
		if status != http.StatusOK {
			t.Fatalf("refresh %d: HTTP %d, %v", n, status, got)
		}
		access, refresh = got["access_token"].(string), got["refresh_token"].(string)
		w.knocks("a refreshed token", access, http.StatusOK)
	}
	for _, node := range w.nodes {
		if list, err := node.Logins(); err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
	}

	// Codes and refresh tokens are used once, at whichever node.
	status, got := h.refresh(first)
	w.denied("an old refresh token", status, got, 400, "invalid_grant")
	w.knocks("a token of the login that has ended", access, http.StatusUnauthorized)
	code := h.code(b)
	if status, got = h.exchange(code); status != http.StatusOK {
		t.Fatalf("exchange: HTTP %d, %v", status, got)
	}
	access = got["access_token"].(string)
	status, got = h.exchange(code)
	w.denied("a code for the second time", status, got, 400, "invalid_grant")
	w.knocks("a token whose code was used twice", access, http.StatusUnauthorized)
	access, _ = h.tokens(b)
	w.knocks("a further token", access, http.StatusOK)
	if n, err := w.nodes[1].EndLogins("alice"); n != 1 || err != nil {
		t.Errorf("EndLogins: %d, %v", n, err)
	}
	w.knocks("a token of a login that was ended", access, http.StatusUnauthorized)

	// While the State does not answer, tokens are good, and nothing else goes.
	access, refresh = h.tokens(b)
	w.knocks("a last token", access, http.StatusOK)
	state.down.Store(true)
	w.knocks("a token without the others", access, http.StatusOK)
	if status, got = h.refresh(refresh); status != http.StatusServiceUnavailable || got["error_description"] != "the cluster does not answer; try again" {
		t.Errorf("refresh without the others: HTTP %d, %v", status, got)
	}
	state.down.Store(false)
	if status, got = h.refresh(refresh); status != http.StatusOK {
		t.Errorf("refresh: HTTP %d, %v", status, got)
	}
	refresh = got["refresh_token"].(string)

	// The folders keep the logins when all nodes have ended, also of one that has ended before.
	w.nodes[0].Close()
	w.nodes = w.nodes[1:]
	for range 2 {
		if status, got = h.refresh(refresh); status != http.StatusOK {
			t.Fatalf("refresh: HTTP %d, %v", status, got)
		}
		access, refresh = got["access_token"].(string), got["refresh_token"].(string)
	}
	for _, node := range w.nodes {
		node.Close()
	}
	again := newNodes(t, 3, new(cluster.Memory), dir)
	h.world = again
	again.knocks("a token of before", access, http.StatusOK)
	if status, got = h.refresh(refresh); status != http.StatusOK {
		t.Errorf("refresh after a restart of all: HTTP %d, %v", status, got)
	}
}

// losing is a State that may lose everything without a word.
type losing struct {
	now atomic.Pointer[cluster.Memory]
}

func (l *losing) Get(ctx context.Context, key string) (cluster.Entry, error) {
	return l.now.Load().Get(ctx, key)
}

func (l *losing) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	return l.now.Load().Put(ctx, key, value, version, ttl)
}

func (l *losing) Delete(ctx context.Context, key string, version uint64) error {
	return l.now.Load().Delete(ctx, key, version)
}

func (l *losing) Watch(ctx context.Context, prefix string) iter.Seq2[cluster.Change, error] {
	return l.now.Load().Watch(ctx, prefix)
}

// A State that has lost everything, as NATS does that keeps it in memory, gets keys and logins again.
func TestNodesAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := new(losing)
		state.now.Store(new(cluster.Memory))
		w := newNodes(t, 2, state, t.TempDir())
		defer func() {
			for _, node := range w.nodes {
				node.Close()
			}
		}()
		h := w.register(nil)
		access, refresh := h.tokens(w.browser())
		state.now.Store(new(cluster.Memory))
		time.Sleep(15 * time.Second)
		late := newNodes(t, 1, state, t.TempDir()) // which knows nothing
		defer late.nodes[0].Close()
		late.knocks("a token of before", access, http.StatusOK)
		h.world = late
		if status, got := h.refresh(refresh); status != http.StatusOK {
			t.Errorf("refresh: HTTP %d, %v", status, got)
		}
	})
}

// A value that a newer program has written is not touched, and the error names it.
func TestNodesOfANewerFormat(t *testing.T) {
	for _, kind := range []string{"keys", "session"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(cluster.Memory)
				first := newNodes(t, 1, m, t.TempDir())
				first.register(nil).tokens(first.browser())
				first.nodes[0].Close()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				key := ""
				for c, err := range m.Watch(ctx, "login") {
					if err != nil || c.Key == "" {
						break
					}
					if strings.Contains(c.Key, "."+kind) {
						key = c.Key
						if _, err := m.Put(ctx, key, []byte(`{"v":2}`), c.Version, 0); err != nil {
							t.Fatal(err)
						}
					}
				}
				late := &issuer.Server{URL: siteURL, Resource: resourceURL, Provider: issuer.Provider{Issuer: providerURL, ClientID: "gateway"}, State: m}
				defer late.Close()
				if err := late.Check(); err == nil || !strings.Contains(err.Error(), key+" has format 2, and this node knows 1; update it") {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
