package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Lease is the right of a node to do what only one may do at a time. The node renews it in the background, and loses it if
// it cannot. A node that was stopped for a while believes longer than others that it holds the lease: whatever it changes
// elsewhere should check [Lease.Fence].
type Lease struct {
	state State
	key   string
	value []byte // the node, an id that no other lease has, and ttl
	fence uint64
	ttl   time.Duration

	stop context.CancelFunc
	lost chan struct{} // closed when it is no longer held
	done chan struct{} // closed when it is no longer renewed

	mu      sync.Mutex
	version uint64    // guarded by mu
	until   time.Time // by this node's clock; guarded by mu
}

// leaseKey is the key of a lease in the State.
func leaseKey(name string) string { return "lease." + name }

// TryAcquire takes a lease for a node if no node holds it. If one does, the same node included, the error is [ErrConflict] and
// names the holder. The lease ends ttl after its last renewal, three of which fit into it; ttl is rounded up to seconds.
func TryAcquire(ctx context.Context, s State, name, node string, ttl time.Duration) (*Lease, error) {
	if ttl <= 0 {
		return nil, fmt.Errorf("lease %s: ttl %v is not positive", name, ttl)
	}
	ttl = Seconds(ttl)
	l := &Lease{state: s, key: leaseKey(name), ttl: ttl, lost: make(chan struct{}), done: make(chan struct{})}
	l.value = []byte(node + " " + rand.Text() + " " + ttl.String())
	begin := time.Now()
	version, err := s.Put(ctx, l.key, l.value, 0, ttl)
	if errors.Is(err, ErrConflict) {
		if e, err := s.Get(ctx, l.key); err == nil {
			holder, _, _ := strings.Cut(string(e.Value), " ")
			return nil, fmt.Errorf("lease %s: held by %s: %w", name, holder, ErrConflict)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", name, err)
	}
	l.fence, l.version, l.until = version, version, begin.Add(l.safe())
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	go l.renew(ctx, max(0, ttl/3-time.Since(begin)))
	return l, nil
}

// Acquire waits until no other node holds a lease, and takes it. If ctx ends while another one holds it, the error is [ErrConflict] and that
// of ctx.
func Acquire(ctx context.Context, s State, name, node string, ttl time.Duration) (*Lease, error) {
	for {
		l, err := TryAcquire(ctx, s, name, node, ttl)
		if !errors.Is(err, ErrConflict) {
			return l, err
		}
		if err := free(ctx, s, name); err != nil {
			return nil, fmt.Errorf("lease %s: %w", name, err)
		}
	}
}

// free returns when a lease may be free. One that is not renewed for its time has ended, also if the clock of the State is behind.
func free(ctx context.Context, s State, name string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	holder := ""
	var late *time.Timer
	defer func() {
		if late != nil {
			late.Stop()
		}
	}()
	for c, err := range s.Watch(ctx, "lease") {
		switch {
		case err != nil:
			return err
		case c.Key == "" && holder == "", c.Key == leaseKey(name) && c.Deleted:
			return nil
		case c.Key == leaseKey(name):
			holder, _, _ = strings.Cut(string(c.Value), " ")
			if late != nil {
				late.Stop()
			}
			value := string(c.Value)
			if ttl, err := time.ParseDuration(value[strings.LastIndexByte(value, ' ')+1:]); err == nil {
				late = time.AfterFunc(overdue(ttl), func() { _ = s.Delete(ctx, c.Key, c.Version) }) // it was renewed, or TryAcquire tells
			}
		}
	}
	if holder != "" {
		return fmt.Errorf("held by %s: %w (%w)", holder, ErrConflict, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// safe is how long the lease is held after the begin of a renewal: clocks of two machines do not run at the same speed.
func (l *Lease) safe() time.Duration { return l.ttl * 9 / 10 }

// overdue is how long a lease that is not renewed looks held to others, by their clocks.
func overdue(ttl time.Duration) time.Duration { return ttl * 11 / 10 }

// renew keeps the lease until ctx ends or it is lost. The first renewal begins after a time.
func (l *Lease) renew(ctx context.Context, first time.Duration) {
	defer close(l.done)
	defer close(l.lost)
	wait := time.NewTimer(first)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		l.mu.Lock()
		version, until := l.version, l.until
		l.mu.Unlock()
		begin := time.Now()
		try, cancel := context.WithDeadline(ctx, until)
		version, err := l.state.Put(try, l.key, l.value, version, l.ttl)
		next := l.ttl / 3
		if errors.Is(err, ErrConflict) { // perhaps with a renewal of this lease whose answer was lost
			var e Entry
			if e, err = l.state.Get(try, l.key); err == nil && !bytes.Equal(e.Value, l.value) {
				err = ErrConflict
			}
			version, begin, next = e.Version, until.Add(-l.safe()), 0 // which is renewed at once
		}
		cancel()
		switch {
		case err == nil:
			l.mu.Lock()
			l.version, l.until = version, begin.Add(l.safe())
			l.mu.Unlock()
			next = max(0, next-time.Since(begin)) // a State may be slow
		case ctx.Err() != nil, errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound), !time.Now().Before(until):
			return
		default:
			next = l.ttl / 20
		}
		wait.Reset(next)
	}
}

// Fence is greater than that of each lease of this name before.
func (l *Lease) Fence() uint64 { return l.fence }

// Held says whether the lease is held now, by this node's clock.
func (l *Lease) Held() bool { return l.HeldFor(0) }

// HeldFor says whether the lease is held now and, if it is not given back, for a time from now on, by this node's clock.
func (l *Lease) HeldFor(d time.Duration) bool {
	select {
	case <-l.lost:
		return false
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(d).Before(l.until)
}

// Lost is closed when the lease is no longer held: after Release, or because it could not be renewed.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back, so that another node need not wait for its end. To release a lease that is lost is not an
// error.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	l.mu.Lock()
	version := l.version
	l.mu.Unlock()
	if err := l.state.Delete(ctx, l.key, version); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("%s: %w", l.key, err)
	}
	return nil
}

// Seconds rounds a positive duration up to seconds, as a State does.
func Seconds(d time.Duration) time.Duration {
	if r := d.Truncate(time.Second); r != d {
		return r + time.Second
	}
	return d
}
