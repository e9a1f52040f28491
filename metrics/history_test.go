package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// The history of a server has a point for each minute and each hour with calls, with the counts of that time alone, at
// the minutes of the clock.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(metrics.Counters)
		took, err := time.Duration(0), error(nil)
		h := c.Around(nil)("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			time.Sleep(took)
			return mcp.RawResult(`{}`), err
		}))
		handle := func(n int, d time.Duration, fault error) {
			took, err = d, fault
			for range n {
				h.Handle(t.Context(), call("t"))
			}
		}
		if got := c.Minutes("s"); got != nil {
			t.Errorf("before the first call: %+v", got)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour))) // to the begin of an hour
		start := time.Now()
		handle(3, 10*time.Millisecond, nil)
		time.Sleep(time.Minute)
		handle(2, 2*time.Second, nil)
		handle(1, 0, errors.New("broken"))
		time.Sleep(20 * time.Minute)
		handle(1, time.Millisecond, nil)
		check := func(name string, got []metrics.Point, want ...metrics.Point) {
			t.Helper()
			if len(got) != len(want) {
				t.Fatalf("%s: %+v, want %d points", name, got, len(want))
			}
			for i, g := range got {
				w := want[i]
				ratio := float64(g.P95.Duration) / float64(w.P95.Duration)
				if !g.At.Equal(w.At) || g.Calls != w.Calls || g.Errors != w.Errors || g.Slow != w.Slow || ratio < 0.93 || ratio > 1.07 || g.BytesIn == 0 {
					t.Errorf("%s: point %d is %+v, want %+v", name, i, g, w)
				}
			}
		}
		ms := func(n int) metrics.Latency { return metrics.Latency{Duration: time.Duration(n) * time.Millisecond} }
		check("minutes", c.Minutes("s"),
			metrics.Point{At: start, Calls: 3, P95: ms(10)},
			metrics.Point{At: start.Add(time.Minute), Calls: 3, Errors: 1, Slow: 2, P95: ms(2000)},
			metrics.Point{At: start.Add(21 * time.Minute), Calls: 1, P95: ms(1)})
		check("hours", c.Hours("s"), metrics.Point{At: start, Calls: 7, Errors: 1, Slow: 2, P95: ms(2000)})
		if got := c.OfTool("s", "t"); len(got) < 2 || got[0].Calls+got[1].Calls+got[len(got)-1].Calls < 7 {
			t.Errorf("the tool has %+v", got)
		}

		time.Sleep(time.Hour)
		handle(2, 10*time.Millisecond, nil)
		check("minutes, later", c.Minutes("s"), metrics.Point{At: start.Add(81 * time.Minute), Calls: 2, P95: ms(10)})
		check("hours, later", c.Hours("s"),
			metrics.Point{At: start, Calls: 7, Errors: 1, Slow: 2, P95: ms(2000)},
			metrics.Point{At: start.Add(time.Hour), Calls: 2, P95: ms(10)})
		time.Sleep(25 * time.Hour)
		if m, h, tool := c.Minutes("s"), c.Hours("s"), c.OfTool("s", "t"); m != nil || h != nil || tool != nil {
			t.Errorf("a day later: %+v, %+v, %+v", m, h, tool)
		}
		for range 100 { // more minutes and hours than are kept
			handle(1, time.Millisecond, nil)
			time.Sleep(time.Minute)
		}
		if got := c.Minutes("s"); len(got) != 59 && len(got) != 60 {
			t.Errorf("%d minutes", len(got))
		}
		for range 30 {
			handle(1, time.Millisecond, nil)
			time.Sleep(time.Hour)
		}
		if got := c.Hours("s"); len(got) != 23 && len(got) != 24 {
			t.Errorf("%d hours", len(got))
		}
	})
}

// Every call is in one point, however many goroutines make them while minutes pass.
func TestHistoryOfManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(metrics.Counters)
		h := c.Server("s")(answer(mcp.RawResult(`{}`), nil))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 200 {
					h.Handle(t.Context(), call(fmt.Sprint("t", i, n%3)))
					time.Sleep(time.Duration(5+i) * time.Second)
					c.Minutes("s")
				}
			})
		}
		wg.Wait()
		var sum uint64
		for _, p := range c.Hours("s") {
			sum += p.Calls
		}
		if sum != 8*200 {
			t.Errorf("%d calls are in the history, of %d", sum, 8*200)
		}
	})
}

// Names without counts have no history.
func TestHistoryOfNobody(t *testing.T) {
	c := new(metrics.Counters)
	c.Server("s")
	if c.Minutes("x") != nil || c.Hours("s") != nil || c.OfTool("x", "y") != nil || c.OfTool("s", "y") != nil {
		t.Error("there is a history")
	}
}

// BenchmarkMinutes measures the points of a server with a hundred tools; the first call of a minute adds up as much.
func BenchmarkMinutes(b *testing.B) {
	c := new(metrics.Counters)
	h := c.Server("s")(answer(mcp.RawResult(`{}`), nil))
	for n := range 100 {
		h.Handle(b.Context(), call(fmt.Sprint("tool", n)))
	}
	for b.Loop() {
		c.Minutes("s")
	}
}
