package breaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

var errLost = &net.OpError{Op: "read", Net: "tcp", Err: io.ErrUnexpectedEOF}

// refusal is an mcp.Denial, as of a policy.
type refusal struct{}

func (refusal) Error() string                                 { return "denied" }
func (refusal) HTTPHeader(context.Context) (int, http.Header) { return http.StatusForbidden, nil }

// Only faults of the way to the server open a breaker.
func TestWhatCounts(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	limited := mcp.Errorf(jsonrpc.CodeInternal, "over the rate limit")
	limited.Data = json.RawMessage(`{"retryAfter":3}`)
	for name, tt := range map[string]struct {
		ctx   context.Context
		res   mcp.Result
		err   error
		opens bool
	}{
		"a lost connection":     {err: errLost, opens: true},
		"the end of a process":  {err: &mcp.ExitError{State: "exit status 1"}, opens: true},
		"status 502":            {err: &mcp.HTTPError{Status: 502}, opens: true},
		"a limit":               {err: &mcp.LimitError{Limit: time.Second}, opens: true},
		"-32603":                {err: mcp.Errorf(jsonrpc.CodeInternal, "panic"), opens: true},
		"a result":              {res: mcp.RawResult(`{"content":[]}`)},
		"isError":               {res: mcp.RawResult(`{"content":[],"isError":true}`)},
		"isError of a Server":   {res: &mcp.ToolResult{IsError: true}},
		"wrong arguments":       {err: mcp.Errorf(jsonrpc.CodeInvalidParams, "no")},
		"a caller that left":    {ctx: left, err: context.Canceled},
		"a policy":              {err: refusal{}},
		"a question":            {err: mcp.ErrPending},
		"status 404":            {err: &mcp.HTTPError{Status: 404}},
		"status 429":            {err: &mcp.HTTPError{Status: 429}},
		"a session that is new": {err: mcp.ErrSessionLost},
		"a rate limit":          {err: limited},
	} {
		t.Run(name, func(t *testing.T) {
			b := &breaker.Breaker{Name: "it"}
			defer b.Stop()
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			for range 40 {
				b.Done(ctx, tt.res, tt.err)
			}
			if open := b.Allow() != nil; open != tt.opens {
				t.Errorf("open: %v, want %v", open, tt.opens)
			}
		})
	}
}

// A breaker opens with 10 failures of the last 20 requests in 30 seconds, refuses requests, and closes
// when a probe succeeds. No request is a probe.
func TestOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		var works atomic.Bool
		var told []bool
		b := &breaker.Breaker{
			Name: `server "db"`, OnChange: func(s breaker.Status) { told = append(told, s.Open) },
			Probe: func(context.Context) error {
				if probes.Add(1); !works.Load() {
					return errLost
				}
				return nil
			},
		}
		defer b.Stop()
		sent, fails := 0, true
		h := b.Handler(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			if sent++; fails {
				return nil, errLost
			}
			return mcp.RawResult(`{}`), nil
		}))
		call := func() error {
			_, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call"})
			return err
		}
		for range 9 {
			call()
		}
		time.Sleep(31 * time.Second) // they do not count any more
		for range 9 {
			call()
		}
		if err := b.Allow(); err != nil {
			t.Fatalf("open after 9 failures in 30 seconds: %v", err)
		}
		call()
		err := call()
		var open *breaker.OpenError
		var rpc *mcp.Error
		if !errors.As(err, &open) || !errors.As(err, &rpc) || string(rpc.Data) != `{"retryAfter":16}` || sent != 19 {
			t.Fatalf("after 10 failures: %v, %d requests sent", err, sent)
		}
		for _, want := range []string{`server "db"`, "unexpected EOF", "in 15s"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
		time.Sleep(16 * time.Second) // a probe fails, the next is after 30 seconds
		synctest.Wait()
		if s := b.Status(); probes.Load() != 1 || !s.Open || sent != 19 || !strings.Contains(call().Error(), "in 29s") {
			t.Fatalf("after the first probe: %d probes, %+v, %d sent, %v", probes.Load(), s, sent, call())
		}
		works.Store(true)
		fails = false
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if err := call(); err != nil || probes.Load() != 2 || sent != 20 {
			t.Fatalf("after the second probe: %v, %d probes, %d sent", err, probes.Load(), sent)
		}
		fails = true // it flaps: the pause goes on growing
		for range 10 {
			call()
		}
		if err := call(); err == nil || !strings.Contains(err.Error(), "in 1m0s") {
			t.Errorf("after another failure: %v", err)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		for range 10 {
			call()
		}
		if err := call(); err == nil || !strings.Contains(err.Error(), "in 15s") {
			t.Errorf("an hour later: %v", err)
		}
		if len(told) != 5 || !told[0] || told[1] || !told[4] || b.Status().Opened != 3 {
			t.Errorf("told %v, %+v", told, b.Status())
		}
	})
}

// Half of the requests may fail for as long as they are fewer than the rule says.
func TestSuccessesCount(t *testing.T) {
	b := &breaker.Breaker{Name: "it", Rule: breaker.Rule{Failures: 3, Calls: 4}}
	defer b.Stop()
	for range 20 {
		b.Done(t.Context(), nil, errLost)
		b.Done(t.Context(), mcp.RawResult(`{}`), nil)
	}
	if err := b.Allow(); err != nil {
		t.Fatal(err)
	}
	b.Done(t.Context(), nil, errLost)
	b.Done(t.Context(), nil, errLost)
	if b.Allow() == nil {
		t.Error("3 of the last 4 requests have failed")
	}
}

// A probe that hangs ends, and so does Stop.
func TestProbeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker.Breaker{Name: "it", Probe: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		b.Trip("it does not answer")
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if s := b.Status(); !s.Open || !strings.Contains(s.Cause, "within 5s") {
			t.Errorf("%+v", s)
		}
		time.Sleep(30 * time.Second) // during the next probe
		b.Stop()
		if b.Allow() == nil {
			t.Error("Stop has closed the breaker")
		}
	})
}
