package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wait"
)

// A context without a clock measures nothing, and With keeps the clock that there is.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait.From(context.Background()).Since(time.Now())
		if got := wait.From(context.Background()).Sum(); got != 0 {
			t.Errorf("without a clock the sum is %v", got)
		}
		ctx, c := wait.With(context.Background())
		for range 2 {
			began := time.Now()
			time.Sleep(time.Second)
			wait.From(ctx).Since(began)
		}
		if _, again := wait.With(ctx); again != c || c.Sum() != 2*time.Second {
			t.Errorf("the clock is replaced: %v, the sum is %v, want 2s", again != c, c.Sum())
		}
	})
}

// The time with questions counts once however many are open, and also while they are.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *wait.Clock
		none.Ask()
		none.Answered()
		c := new(wait.Clock)
		if none.Asked() != 0 || c.Asked() != 0 {
			t.Error("there is time without a question")
		}
		c.Ask()
		time.Sleep(time.Second)
		c.Ask()
		time.Sleep(time.Second)
		c.Answered()
		time.Sleep(time.Second)
		if got := c.Asked(); got != 3*time.Second {
			t.Errorf("with an open question: %v, want 3s", got)
		}
		c.Answered()
		time.Sleep(time.Second)
		c.Ask()
		c.Answered()
		if got := c.Asked(); got != 3*time.Second || c.Sum() != 0 {
			t.Errorf("%v and waits of %v, want 3s and none", got, c.Sum())
		}
	})
}
