package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/node"
)

// A request that has waited for other processes waits for what is left of its time, then a tenth of a second, and as usual when it has long been at work.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3 * time.Second
		ctx := node.WithUntil(t.Context(), time.Now().Add(time.Second))
		for _, tt := range []struct {
			ctx         context.Context
			after, want time.Duration
		}{
			{t.Context(), 0, most},
			{ctx, 0, time.Second},
			{ctx, 700 * time.Millisecond, 300 * time.Millisecond},
			{ctx, 500 * time.Millisecond, 100 * time.Millisecond},
			{ctx, 4 * time.Second, 100 * time.Millisecond},
			{ctx, 2 * time.Second, most},
		} {
			time.Sleep(tt.after)
			if got := node.Wait(tt.ctx, most); got != tt.want {
				t.Errorf("%v later: %v, want %v", tt.after, got, tt.want)
			}
		}
	})
}
