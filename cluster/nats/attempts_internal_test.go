package nats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An attempt whose request gets no answer is over after two seconds at most, however many were refused at once before.
func TestAttemptsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, last := 0, time.Duration(0)
		err := attempts(t.Context(), func(ctx context.Context) error {
			if n++; n <= 1000 {
				return errors.New("no leader yet")
			}
			begin := time.Now()
			<-ctx.Done()
			if last = time.Since(begin); n < 1100 {
				return ctx.Err()
			}
			return nil
		})
		if err != nil || n != 1100 || last != 2*time.Second {
			t.Errorf("%d attempts, the last one took %v: %v", n, last, err)
		}
	})
}
