package nats

import (
	"context"
	"errors"
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

// A request without an answer is sent again after half of the time that it has, and the first answer that counts is taken.
func TestTwice(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		first, second time.Duration // until the answer
		errs          [2]error
		value         int
		took          time.Duration
	}{
		"at once":              {first: time.Millisecond, value: 1, took: time.Millisecond},
		"the second":           {first: never, second: 10 * time.Millisecond, value: 2, took: 260 * time.Millisecond},
		"the first, late":      {first: 300 * time.Millisecond, second: never, value: 1, took: 300 * time.Millisecond},
		"a conflict":           {first: 300 * time.Millisecond, second: never, errs: [2]error{cluster.ErrConflict}, took: 300 * time.Millisecond},
		"refused at once":      {first: time.Millisecond, errs: [2]error{errors.New("no leader yet")}, took: time.Millisecond},
		"refused, then there":  {first: 300 * time.Millisecond, second: 100 * time.Millisecond, errs: [2]error{errors.New("no leader yet")}, value: 2, took: 350 * time.Millisecond},
		"both without answers": {first: never, second: never, took: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer stop()
				var calls atomic.Int32
				begin := time.Now()
				value, err := twice(ctx, func(ctx context.Context) (int, error) {
					n := int(calls.Add(1))
					select {
					case <-time.After([]time.Duration{c.first, c.second}[n-1]):
						return n, c.errs[n-1]
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

// Where NATS needs more than half a second for an answer, the first request finds that out, and the next ones wait for theirs.
func TestAttemptsOfSlowNATS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c state
		for i, want := range []struct {
			attempts int
			took     time.Duration
		}{{3, time.Second/2 + time.Second*9/16 + time.Second*6/10 + 2*settle}, {1, time.Second * 6 / 10}, {1, time.Second * 6 / 10}} {
			n, begin := 0, time.Now()
			err := c.attempts(t.Context(), func(ctx context.Context) error {
				n++
				select {
				case <-time.After(600 * time.Millisecond):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if took := time.Since(begin); err != nil || n != want.attempts || took != want.took {
				t.Errorf("request %d: %d attempts in %v, %v; want %d in %v", i, n, took, err, want.attempts, want.took)
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
		err := attempts(ctx, firstAttempt, func(ctx context.Context) error {
			_, err := twice(ctx, func(context.Context) (int, error) { <-held; return 0, nil })
			return err
		})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second+settle {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
