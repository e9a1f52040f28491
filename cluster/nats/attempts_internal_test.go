package nats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An attempt whose request gets no answer is over after half a second, and later ones after two seconds at most, however many were refused
// at once before.
func TestAttemptsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, first, last := 0, time.Duration(0), time.Duration(0)
		err := attempts(t.Context(), func(ctx context.Context) error {
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
