// Package suite tests that a State and a Bus keep their promises, whatever they are made of.
package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
)

// patience bounds what a test waits for.
const patience = 60 * time.Second

// State tests a State as several nodes see it. Each call of nodes returns a State that is empty.
func State(t *testing.T, nodes func(t *testing.T) []cluster.State) {
	for name, test := range map[string]func(t *testing.T, nodes []cluster.State){
		"change": change, "refusals": refusals, "one creates": oneCreates, "one deletes": oneDeletes, "count": count,
		"expire": expire, "watch": watch, "slow watch": slowWatch, "watch ends": watchEnds,
		"lease": lease, "lease waits": leaseWaits, "lease is taken": leaseIsTaken, "lease outlives its ttl": leaseOutlives,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, nodes(t))
		})
	}
}

func within(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	return ctx
}

func put(t *testing.T, s cluster.State, key, value string, version uint64, ttl time.Duration) uint64 {
	t.Helper()
	next, err := s.Put(within(t), key, []byte(value), version, ttl)
	if err != nil {
		t.Fatalf("Put(%s, %s, %d): %v", key, value, version, err)
	}
	if next <= version {
		t.Fatalf("Put(%s, %s, %d): version %d is not greater", key, value, version, next)
	}
	return next
}

func wantEntry(t *testing.T, s cluster.State, key, value string, version uint64) {
	t.Helper()
	e, err := s.Get(within(t), key)
	if err != nil || e.Key != key || string(e.Value) != value || e.Version != version {
		t.Fatalf("Get(%s): %q, version %d, %v; want %q, version %d", key, e.Value, e.Version, err, value, version)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func change(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	a, b := nodes[0], nodes[len(nodes)-1]
	_, err := a.Get(ctx, "k")
	wantError(t, "Get of nothing", err, cluster.ErrNotFound)
	wantError(t, "Delete of nothing", a.Delete(ctx, "k", 1), cluster.ErrConflict)

	first := put(t, a, "k", "one", 0, 0)
	wantEntry(t, b, "k", "one", first)
	_, err = b.Put(ctx, "k", []byte("other"), 0, 0)
	wantError(t, "second Put of a new key", err, cluster.ErrConflict)
	second := put(t, b, "k", "two", first, 0)
	wantEntry(t, a, "k", "two", second)
	_, err = a.Put(ctx, "k", []byte("late"), first, 0)
	wantError(t, "Put with an old version", err, cluster.ErrConflict)
	wantError(t, "Delete with an old version", a.Delete(ctx, "k", first), cluster.ErrConflict)
	wantEntry(t, b, "k", "two", second)

	if other := put(t, a, "other", "", 0, 0); other <= second {
		t.Errorf("another key got version %d after %d", other, second)
	}
	if err := a.Delete(ctx, "k", second); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(ctx, "k")
	wantError(t, "Get of what was deleted", err, cluster.ErrNotFound)
	wantError(t, "second Delete", b.Delete(ctx, "k", second), cluster.ErrConflict)
	_, err = b.Put(ctx, "k", nil, second, 0)
	wantError(t, "Put to what was deleted", err, cluster.ErrConflict)
	if third := put(t, b, "k", "three", 0, 0); third <= second {
		t.Errorf("the key has version %d after %d", third, second)
	}
}

func refusals(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	s := nodes[0]
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "ä", "a/b", "$KV", strings.Repeat("k", 201)} {
		if _, err := s.Put(ctx, key, nil, 0, 0); err == nil {
			t.Errorf("Put(%q) worked", key)
		}
		if _, err := s.Get(ctx, key); err == nil || errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("Get(%q): %v", key, err)
		}
		if err := s.Delete(ctx, key, 1); err == nil || errors.Is(err, cluster.ErrConflict) {
			t.Errorf("Delete(%q): %v", key, err)
		}
	}
	if _, err := s.Put(ctx, "large", make([]byte, cluster.MaxValue+1), 0, 0); err == nil {
		t.Error("a value that is too large was taken")
	}
	large := bytes.Repeat([]byte{0, '\n', 0xff}, cluster.MaxValue/3)
	version, err := s.Put(ctx, "large", large, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := nodes[len(nodes)-1].Get(ctx, "large"); err != nil || !bytes.Equal(e.Value, large) || e.Version != version {
		t.Errorf("a large value: %d bytes, version %d, %v", len(e.Value), e.Version, err)
	}
	if _, err := s.Put(ctx, "past", nil, 0, -1); err == nil {
		t.Error("a negative ttl was taken")
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := s.Put(ended, "ended", nil, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Put with a context that is over: %v", err)
	}
}

// race calls f once per caller, all at once, and returns how many calls returned nil.
func race(t *testing.T, callers int, f func(i int) error, otherwise error) (winners int32) {
	t.Helper()
	var wg sync.WaitGroup
	var n atomic.Int32
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			switch err := f(i); {
			case err == nil:
				n.Add(1)
			case !errors.Is(err, otherwise):
				t.Errorf("caller %d: %v, want %v", i, err, otherwise)
			}
		})
	}
	close(start)
	wg.Wait()
	return n.Load()
}

func oneCreates(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	for _, key := range []string{"new", "new.again", "deleted"} {
		if key == "deleted" {
			if err := nodes[0].Delete(ctx, key, put(t, nodes[0], key, "", 0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		n := race(t, 32, func(i int) error {
			_, err := nodes[i%len(nodes)].Put(ctx, key, fmt.Append(nil, i), 0, time.Minute)
			return err
		}, cluster.ErrConflict)
		if n != 1 {
			t.Errorf("%d of 32 have created %s", n, key)
		}
	}
}

func oneDeletes(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	version := put(t, nodes[0], "ticket", "once", 0, time.Minute)
	if n := race(t, 32, func(i int) error { return nodes[i%len(nodes)].Delete(ctx, "ticket", version) }, cluster.ErrConflict); n != 1 {
		t.Errorf("%d of 32 have used the ticket", n)
	}
}

func count(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	put(t, nodes[0], "counter", "0", 0, 0)
	const callers, times = 8, 20
	race(t, callers, func(i int) error {
		s := nodes[i%len(nodes)]
		for range times {
			for {
				e, err := s.Get(ctx, "counter")
				if err != nil {
					return err
				}
				n, _ := strconv.Atoi(string(e.Value))
				if _, err = s.Put(ctx, "counter", fmt.Append(nil, n+1), e.Version, 0); err == nil {
					break
				} else if !errors.Is(err, cluster.ErrConflict) {
					return err
				}
			}
		}
		return nil
	}, cluster.ErrConflict)
	if e, err := nodes[0].Get(ctx, "counter"); err != nil || string(e.Value) != fmt.Sprint(callers*times) {
		t.Errorf("the counter is %s, %v, after %d increments", e.Value, err, callers*times)
	}
}

func expire(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	s := nodes[0]
	deleted := make(chan time.Time, 8)
	ready := make(chan struct{})
	go func() {
		for c, err := range nodes[len(nodes)-1].Watch(ctx, "short") {
			switch {
			case err != nil:
				return
			case c.Key == "":
				close(ready)
			case c.Deleted && c.Key == "short.lived":
				deleted <- time.Now()
			}
		}
	}()
	<-ready
	begin := time.Now()
	put(t, s, "short.lived", "x", 0, 300*time.Millisecond) // a second
	kept := put(t, s, "short.kept", "x", 0, time.Second)
	kept = put(t, s, "short.kept", "y", kept, 0)
	select {
	case at := <-deleted:
		if at.Sub(begin) < time.Second {
			t.Errorf("the entry expired after %v", at.Sub(begin))
		}
	case <-ctx.Done():
		t.Fatal("the entry did not expire, or Watch did not tell")
	}
	_, err := s.Get(ctx, "short.lived")
	wantError(t, "Get of what has expired", err, cluster.ErrNotFound)
	put(t, s, "short.lived", "again", 0, time.Minute)
	wantEntry(t, s, "short.kept", "y", kept)
}

// watching collects what Watch tells.
type watching struct {
	changes chan cluster.Change
	err     chan error
}

func watchOn(ctx context.Context, s cluster.State, prefix string) watching {
	w := watching{make(chan cluster.Change, 1000), make(chan error, 1)}
	go func() {
		defer close(w.err)
		for c, err := range s.Watch(ctx, prefix) {
			if err != nil {
				w.err <- err
				return
			}
			w.changes <- c
		}
	}()
	return w
}

func (w watching) next(t *testing.T) cluster.Change {
	t.Helper()
	select {
	case c := <-w.changes:
		return c
	case err := <-w.err:
		t.Fatalf("Watch ended: %v", err)
	case <-time.After(patience):
		t.Fatal("Watch tells nothing")
	}
	return cluster.Change{}
}

func (w watching) want(t *testing.T, key, value string, version uint64, deleted bool) {
	t.Helper()
	c := w.next(t)
	if c.Key != key || string(c.Value) != value || c.Deleted != deleted || version != 0 && c.Version != version {
		t.Fatalf("Watch tells %s = %q, version %d, deleted %v; want %s = %q, %d, %v", c.Key, c.Value, c.Version, c.Deleted, key, value, version, deleted)
	}
}

func watch(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	a, b := nodes[0], nodes[len(nodes)-1]
	x := put(t, a, "list.x", "1", 0, 0)
	y := put(t, b, "list.deep.y", "2", 0, 0)
	gone := put(t, b, "list.gone", "", 0, 0)
	if err := b.Delete(ctx, "list.gone", gone); err != nil {
		t.Fatal(err)
	}
	put(t, a, "list", "not below it", 0, 0)
	put(t, a, "lists.z", "not below it", 0, 0)

	w := watchOn(ctx, b, "list")
	w.want(t, "list.x", "1", x, false)
	w.want(t, "list.deep.y", "2", y, false)
	w.want(t, "", "", 0, false)
	x = put(t, a, "list.x", "3", x, 0)
	w.want(t, "list.x", "3", x, false)
	put(t, a, "lists.w", "not below it", 0, 0)
	if err := a.Delete(ctx, "list.x", x); err != nil {
		t.Fatal(err)
	}
	w.want(t, "list.x", "", 0, true)
	x = put(t, b, "list.x", "4", 0, 0)
	w.want(t, "list.x", "4", x, false)
	var order []uint64 // of many, while Watch may be slow
	for i := range 50 {
		order = append(order, put(t, nodes[i%len(nodes)], fmt.Sprint("list.many", i), "5", 0, 0))
	}
	for i, version := range order {
		w.want(t, fmt.Sprint("list.many", i), "5", version, false)
	}
}

func slowWatch(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	version := put(t, nodes[0], "busy.k", "0", 0, 0)
	n := 0
	for c, err := range nodes[len(nodes)-1].Watch(ctx, "busy") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Key == "" {
			for n < 300 {
				n++
				version = put(t, nodes[0], "busy.k", fmt.Sprint(n), version, 0)
			}
		}
		if string(c.Value) == "300" {
			return
		}
	}
	t.Fatal("Watch did not tell of the last change")
}

func watchEnds(t *testing.T, nodes []cluster.State) {
	ctx, stop := context.WithCancel(within(t))
	w := watchOn(ctx, nodes[0], "nothing")
	w.want(t, "", "", 0, false)
	stop()
	select {
	case err := <-w.err:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Watch ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Watch did not end with its context")
	}
	for range nodes[0].Watch(within(t), "nothing") {
		break // its caller may leave at any time
	}
}

func lease(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	var fence uint64
	for i := range 5 {
		held := make([]*cluster.Lease, 16)
		n := race(t, len(held), func(j int) (err error) {
			held[j], err = cluster.TryAcquire(ctx, nodes[j%len(nodes)], "one", fmt.Sprint("n", j), 10*time.Second)
			return err
		}, cluster.ErrConflict)
		if n != 1 {
			t.Fatalf("%d hold the lease", n)
		}
		for _, l := range held {
			if l == nil {
				continue
			}
			if l.Fence() <= fence || !l.Held() {
				t.Errorf("lease %d: fence %d after %d, held %v", i, l.Fence(), fence, l.Held())
			}
			fence = l.Fence()
			if err := l.Release(ctx); err != nil {
				t.Fatal(err)
			}
			if l.Held() {
				t.Error("a lease that was released is held")
			}
			<-l.Lost()
			if err := l.Release(ctx); err != nil {
				t.Errorf("second Release: %v", err)
			}
		}
	}
	l, err := cluster.TryAcquire(ctx, nodes[0], "named", "n1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release(ctx)
	if _, err := cluster.TryAcquire(ctx, nodes[0], "named", "n2", time.Minute); err == nil || !strings.Contains(err.Error(), "held by n1") {
		t.Errorf("the error does not name the holder: %v", err)
	}
}

func leaseWaits(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	first, err := cluster.Acquire(ctx, nodes[0], "one", "n0", 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *cluster.Lease)
	go func() {
		l, err := cluster.Acquire(ctx, nodes[len(nodes)-1], "one", "n1", 30*time.Second)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := cluster.Acquire(short, nodes[0], "one", "n2", time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire of a held lease: %v", err)
	}
	select {
	case <-got:
		t.Fatal("two hold the lease")
	default:
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	second := <-got
	if second == nil {
		t.FailNow()
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
	second.Release(ctx)
}

func leaseIsTaken(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	l, err := cluster.TryAcquire(ctx, nodes[0], "one", "n0", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for { // l renews it meanwhile
		e, err := nodes[0].Get(ctx, "lease.one")
		if err != nil {
			t.Fatal(err)
		}
		if err = nodes[0].Delete(ctx, e.Key, e.Version); err == nil {
			break
		} else if !errors.Is(err, cluster.ErrConflict) {
			t.Fatal(err)
		}
	}
	select {
	case <-l.Lost():
	case <-ctx.Done():
		t.Fatal("the lease was not lost")
	}
	if l.Held() {
		t.Error("a lost lease is held")
	}
	other, err := cluster.TryAcquire(ctx, nodes[0], "one", "n1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(ctx); err != nil {
		t.Errorf("Release of a lost lease: %v", err)
	}
	if !other.Held() {
		t.Error("the Release of a lost lease took that of another node")
	}
	other.Release(ctx)
}

func leaseOutlives(t *testing.T, nodes []cluster.State) {
	ctx := within(t)
	l, err := cluster.TryAcquire(ctx, nodes[0], "one", "n0", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release(ctx)
	begin := time.Now()
	w := watchOn(ctx, nodes[0], "lease")
	for renewals := 0; renewals < 4; { // the first change is the entry itself
		switch c := w.next(t); {
		case c.Deleted:
			t.Fatalf("the lease ended after %v", time.Since(begin))
		case c.Key != "":
			renewals++
		}
	}
	if !l.Held() {
		t.Error("a lease that was renewed is not held")
	}
}
