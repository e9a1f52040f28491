package spread_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// timed is a connection to a replica whose calls are answered by run, and other requests after a time.
type timed struct {
	*answerer
	run   func() error
	other time.Duration
}

func (a timed) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != "tools/call" {
		time.Sleep(a.other)
	} else if err := a.run(); err != nil {
		return nil, err
	}
	return a.answerer.Handle(ctx, req)
}

func (a timed) replica() spread.Replica {
	return spread.Replica{Name: a.name, Open: func(context.Context) (gateway.Upstream, error) { return a, nil }}
}

// lists lists the tools 20 times.
func lists(t *testing.T, up gateway.Upstream) {
	t.Helper()
	for range 20 {
		if _, err := up.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err != nil {
			t.Fatal(err)
		}
	}
}

// took returns what answers a call after a time.
func took(d time.Duration) func() error { return func() error { time.Sleep(d); return nil } }

// A replica whose lists take long gets the calls if it answers those faster than the other one.
func TestSlowListsDoNotDeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{
			timed{newAnswerer("a"), took(2 * time.Millisecond), time.Second}.replica(), timed{newAnswerer("b"), took(50 * time.Millisecond), 0}.replica(),
		}}
		defer group.Close()
		up := openFirst(t, group)
		defer up.Close()
		lists(t, up)
		at := map[string]int{}
		for range 50 {
			res, err := up.Handle(t.Context(), callOf("t"))
			if err != nil {
				t.Fatal(err)
			}
			at[string(res.JSON())]++
		}
		if at[`{"of":"a"}`] < 45 {
			t.Errorf("calls went to %v", at)
		}
	})
}

// A replica that answers lists within a moment and calls at once with -32603 gets few calls of one caller while the other one
// needs 10 ms, but enough for its breaker to open soon.
func TestFastFailuresDoNotAttract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := &spread.Group{Name: "work", Logger: quiet(), Replicas: []spread.Replica{
			timed{newAnswerer("a"), func() error { return mcp.Errorf(jsonrpc.CodeInternal, "out of order") }, 0}.replica(),
			timed{newAnswerer("b"), took(10 * time.Millisecond), 0}.replica(),
		}}
		defer group.Close()
		up := openFirst(t, group)
		defer up.Close()
		lists(t, up)
		began, n, failed := time.Now(), 0, 0
		for ; !statusOf(group, "a").Breaker.Open; n++ {
			if _, err := up.Handle(t.Context(), callOf("t")); err != nil {
				failed++
			}
			if n == 100 && failed > 5 {
				t.Errorf("%d of the first 100 calls failed", failed)
			}
			if time.Since(began) > time.Minute {
				t.Fatal("the breaker is closed after a minute")
			}
		}
		if n < 100 {
			t.Errorf("the breaker opened after %d calls: the replica that fails fast gets most", n)
		}
		t.Logf("the breaker opened after %v and %d calls", time.Since(began), n)
	})
}

// Callers that fail fast do not attract more: with callers at once, both wrong answers and -32603 reach at most a
// few callers more than it takes to open the breaker.
func TestWrongAnswersDoNotAttract(t *testing.T) {
	long.WithoutRace(t) // it compares latencies below a millisecond
	for _, how := range []string{"a web page", "-32603"} {
		t.Run(how, func(t *testing.T) {
			a, b := newBox(t, "a"), newBox(t, "b")
			group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{Failures: 1000, Calls: 1000}, // it stays closed
				Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
			_, session := through(t, group, gateway.Shared)
			s := session()
			connected(t, group)
			compared(t, s, a, b)
			if how == "-32603" {
				a.broken.Store(true)
			} else {
				a.answersWrongly(wrongs[how], "tools/call")
			}
			failed := 0
			for range 300 {
				if _, err := call(t, s, "work_which"); err != nil {
					failed++
				}
			}
			if failed > 30 {
				t.Errorf("%d of 300 calls failed: the replica that fails fast gets most calls", failed)
			}
		})
	}
}
