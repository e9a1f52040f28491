package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
)

// A quiet server is checked now and then. A server that does not answer is failing and not used
// until it answers.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n"}
		told := &states{}
		h := &host.Host{OnStatus: told.note}
		defer h.Close()
		added(t, h, n.server(""))
		synctest.Wait()
		told.take()
		for range 20 { // no checks while calls arrive
			time.Sleep(30 * time.Second)
			work(t.Context(), h, "n")
		}
		if checks, _ := n.seen(); checks != 0 {
			t.Errorf("a server that works was asked %d times", checks)
		}
		time.Sleep(10 * time.Minute)
		if checks, _ := n.seen(); checks < 8 || checks > 10 {
			t.Errorf("a server that is quiet was asked %d times in 10 minutes, want about once a minute", checks)
		}
		n.set(func() { n.deaf = true })
		for range 75 {
			if time.Sleep(time.Second); status(t, h, "n").State == gateway.Failing {
				break
			}
		}
		if s := status(t, h, "n"); s.State != gateway.Failing || !strings.Contains(s.Reason, "no answer to ping within 10s") {
			t.Errorf("status of one that is deaf: %+v", s.Status)
		}
		began := time.Now()
		if _, err := work(t.Context(), h, "n"); err == nil || time.Since(began) != 0 {
			t.Errorf("work = %v after %v, want an error at once", err, time.Since(began))
		}
		n.set(func() { n.deaf = false })
		time.Sleep(20 * time.Second)
		text, err := work(t.Context(), h, "n")
		if _, opened := n.seen(); text != "by n" || err != nil || opened != 1 {
			t.Errorf("work = %q, %v after %d openings; want it back over the same connection", text, err, opened)
		}
		if got := told.take(); got != "n failing, n ready" {
			t.Errorf("OnStatus: %s", got)
		}

		// A server that never answers again is reconnected.
		n.set(func() { n.deaf = true })
		time.Sleep(3 * time.Minute)
		n.set(func() { n.deaf = false })
		time.Sleep(time.Minute)
		text, err = work(t.Context(), h, "n")
		if _, opened := n.seen(); text != "by n" || err != nil || opened != 2 {
			t.Errorf("work = %q, %v after %d openings; want it back over another connection", text, err, opened)
		}
		if got := told.take(); got != "n failing, n starting, n ready" {
			t.Errorf("OnStatus: %s", got)
		}
	})
}

// A server that works on a long call need not answer checks.
func TestHealthOfWhoWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{name: "n", takes: time.Hour, deaf: true}
		h := &host.Host{}
		defer h.Close()
		added(t, h, n.server(""))
		text, err := work(t.Context(), h, "n")
		if checks, _ := n.seen(); text != "by n" || err != nil || checks != 0 {
			t.Errorf("work = %q, %v, asked %d times meanwhile", text, err, checks)
		}
	})
}
