package nats

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
)

// An attempt whose request gets no answer is over after half a second, and later ones after two seconds at most, however many were refused
// at once before.
func TestAttemptsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, first, last := 0, time.Duration(0), time.Duration(0)
		err := attempts(t.Context(), firstAttempt, func(ctx context.Context) error {
			if n++; n <= 1000 {
				return errors.New("no leader yet")
			}
			begin := time.Now()
			<-ctx.Done()
			if last = time.Since(begin); n == 1001 {
				first = last
			}
			if n < 1100 {
				return ctx.Err()
			}
			return nil
		})
		if err != nil || n != 1100 || first != time.Second/2 || last != 2*time.Second {
			t.Errorf("%d attempts, the first one without an answer took %v, the last one %v: %v", n, first, last, err)
		}
	})
}

// A request without an answer is sent again after a while, and the first answer that counts is taken, also one that is late.
func TestAsk(t *testing.T) {
	const never = time.Hour
	type reply struct {
		after time.Duration
		err   error
	}
	refused := errors.New("no leader yet")
	for name, c := range map[string]struct {
		replies []reply // of one request after the other; those after them have none
		value   int     // which of them counts; 0: an error
		took    time.Duration
	}{
		"at once":             {replies: []reply{{after: time.Millisecond}}, value: 1, took: time.Millisecond},
		"the second":          {replies: []reply{{after: never}, {after: 10 * time.Millisecond}}, value: 2, took: 260 * time.Millisecond},
		"the first, late":     {replies: []reply{{after: 1700 * time.Millisecond}}, value: 1, took: 1700 * time.Millisecond},
		"all late":            {replies: []reply{{after: never}, {after: never}, {after: 700 * time.Millisecond}}, value: 3, took: 1200 * time.Millisecond},
		"a conflict":          {replies: []reply{{300 * time.Millisecond, cluster.ErrConflict}}, took: 300 * time.Millisecond},
		"refused, then there": {replies: []reply{{time.Millisecond, refused}, {time.Millisecond, refused}, {after: time.Millisecond}}, value: 3, took: 3*time.Millisecond + 2*settle},
		"one refused, one not": {
			replies: []reply{{after: 600 * time.Millisecond}, {time.Millisecond, refused}, {time.Millisecond, refused}}, value: 1, took: 600 * time.Millisecond,
		},
		"too late":       {replies: []reply{{after: lastAttempt + time.Millisecond}}, took: 3 * time.Second},
		"without answer": {took: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
				defer stop()
				var calls atomic.Int32
				begin := time.Now()
				value, err := ask(ctx, firstAttempt/2, func(ctx context.Context) (int, error) {
					n, after := int(calls.Add(1)), never
					var err error
					if n <= len(c.replies) {
						after, err = c.replies[n-1].after, c.replies[n-1].err
					}
					select {
					case <-time.After(after):
						return n, err
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				})
				if took := time.Since(begin); took != c.took || (err == nil) != (c.value != 0) || err == nil && value != c.value {
					t.Errorf("%d, %v after %v, not %d after %v", value, err, took, c.value, c.took)
				}
			})
		})
	}
}

// A request that NATS leaves without an answer is sent again after a quarter of a second, however many were refused at once before, and at most once a second
// at last.
func TestAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var mu sync.Mutex
		var sent []time.Time // guarded by mu
		_, err := ask(ctx, firstAttempt/2, func(ctx context.Context) (int, error) {
			mu.Lock()
			sent = append(sent, time.Now())
			refused := len(sent) <= 1000
			mu.Unlock()
			if refused {
				return 0, errors.New("no leader yet")
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		mu.Lock()
		defer mu.Unlock()
		silent := sent[1000:]
		if first, last := silent[1].Sub(silent[0]), silent[len(silent)-1].Sub(silent[len(silent)-2]); first != firstAttempt/2 || last != lastAttempt/2 || err == nil {
			t.Errorf("%d requests, the first one was sent again after %v, the last one after %v: %v", len(sent), first, last, err)
		}
	})
}

// Where NATS suddenly needs longer for an answer than requests wait, the first one takes that long, and is sent more than once; the next ones wait for theirs.
func TestAskSlowNATS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 650 * time.Millisecond
		var c state
		for i, want := range []int{3, 1, 1} {
			var n atomic.Int32
			begin := time.Now()
			_, err := asked(t.Context(), &c, func(ctx context.Context) (int, error) {
				n.Add(1)
				select {
				case <-time.After(slow):
					return 0, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
			if took := time.Since(begin); err != nil || int(n.Load()) != want || took != slow {
				t.Errorf("request %d was sent %d times and took %v, %v; not %d times and %v", i, n.Load(), took, err, want, slow)
			}
		}
	})
}

// A call ends with its context, also one that waits for something else: a connection that is made again holds its lock.
func TestCallsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		defer close(held)
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		began := time.Now()
		_, err := ask(ctx, firstAttempt/2, func(context.Context) (int, error) { <-held; return 0, nil })
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
