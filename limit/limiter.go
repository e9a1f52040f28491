package limit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A Limiter limits the requests from each caller. Its fields must not change after the first use.
// The zero value bounds nothing. It is safe for concurrent use.
type Limiter struct {
	// Caller bounds the requests from each caller.
	Caller Rate

	// Tools bounds the tool calls of each caller, by tool name. An entry "db_*" is one limit shared
	// by all tools whose names begin with "db_".
	Tools map[string]Rate

	// Concurrent bounds the running requests from each caller, subscriptions aside. Zero means no
	// bound.
	Concurrent int

	// Address bounds the HTTP requests from each address, including those that fail authentication.
	// The address is that of the connection; for IPv6 it is the /64 network.
	Address Rate

	// Proxies are the networks whose X-Forwarded-For is trusted.
	Proxies []netip.Prefix

	// Group is the processes that have these limits together. Nil: this one alone.
	Group *Group

	known buckets
}

// Error reports that a caller has to wait. It reaches callers as an [*mcp.Error] with
// [jsonrpc.CodeInternal] and the data {"retryAfter": SECONDS}, and over HTTP with status 429.
type Error struct {
	What       string        // the exceeded limit
	RetryAfter time.Duration // time until a retry can succeed
}

// Error returns What and the time to wait, in seconds.
func (e *Error) Error() string {
	return fmt.Sprintf("%s; try again in %d s", e.What, e.seconds())
}

// seconds returns the time to wait in whole seconds, at least one.
func (e *Error) seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Unwrap returns the error as callers get it, an [*mcp.Error].
func (e *Error) Unwrap() error { return e.rpc() }

func (e *Error) rpc() *mcp.Error {
	return &mcp.Error{Code: jsonrpc.CodeInternal, Message: e.Error(), Data: json.RawMessage(fmt.Sprintf(`{"retryAfter":%d}`, e.seconds()))}
}

// Limit is an [mcp.Middleware] that answers requests over a limit with an [*Error].
func (l *Limiter) Limit(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		done, err := l.admit(ctx, req)
		if err != nil {
			return nil, err
		}
		defer done()
		return next.Handle(ctx, req)
	})
}

// admit counts a request, until done is called.
func (l *Limiter) admit(ctx context.Context, req *mcp.Request) (done func(), err error) {
	call := mcp.CallFrom(ctx)
	listens := req.Method == "subscriptions/listen"
	if listens && call != nil && call.Revision.Sessions() {
		return func() {}, nil // a request of the session itself, for a subscription
	}
	who := callerOf(ctx, call)
	now := time.Now()
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	b := l.known.of(key{caller, who, ""}, l.Caller, l.Group, now)
	if l.Concurrent > 0 && !listens && b.running >= partOf(l.Concurrent, b.part) {
		l.Group.note(b, now, l.running(b))
		return nil, &Error{fmt.Sprintf("more than %d requests at once from one caller", l.Concurrent), time.Second}
	}
	takes := []*bucket{b}
	if goesOn(call, req) {
		takes[0] = l.known.of(key{further, who, ""}, l.further(), l.Group, now)
	} else if tool, ok := toolOf(req); ok {
		for pattern, r := range l.Tools {
			if matches(pattern, tool) {
				takes = append(takes, l.known.of(key{ofTool, who, pattern}, r, l.Group, now))
			}
		}
	}
	var late *bucket
	var wait time.Duration
	for _, t := range takes {
		if w := t.wait(now); w > wait {
			late, wait = t, w
		}
	}
	if late != nil {
		l.Group.note(late, now, l.running(late))
		wait = l.Group.soon(late, now, wait)
		what := fmt.Sprintf("more requests than %s from one caller", late.rate)
		switch late.kind {
		case ofTool:
			what = fmt.Sprintf("more calls of %q than %s from one caller", late.tool, late.rate)
		case further:
			what = fmt.Sprintf("more answers and requests about tasks than %s from one caller", late.rate)
		}
		return nil, &Error{what, wait}
	}
	if !listens {
		b.running++
	}
	for _, t := range takes {
		t.take(now)
		l.Group.note(t, now, l.running(t))
	}
	if takes[0] != b {
		l.Group.note(b, now, l.running(b))
	}
	if listens {
		return func() {}, nil
	}
	return func() {
		l.known.mu.Lock()
		defer l.known.mu.Unlock()
		b.running--
		l.Group.ended(b, l.running(b))
	}, nil
}

// running returns how much of what may run at once does, from 0 to 1.
func (l *Limiter) running(b *bucket) float64 {
	if l.Concurrent == 0 {
		return 0
	}
	return float64(b.running) / float64(l.Concurrent)
}

// Follow-up requests may come furtherTimes as fast as others, and at least at furtherLeast, because
// a task is polled and has many questions.
const (
	furtherTimes = 16
	furtherLeast = 20 // a second
)

// further returns the rate of follow-up requests.
func (l *Limiter) further() Rate {
	if l.Caller.none() {
		return Rate{}
	}
	r := Rate{Count: min(l.Caller.Count, maxRate/furtherTimes) * furtherTimes, Per: l.Caller.Per, Burst: min(l.Caller.burst(), maxRate/furtherTimes) * furtherTimes}
	if r.perSecond() < furtherLeast {
		return Rate{Count: furtherLeast, Per: time.Second, Burst: max(r.Burst, 5*furtherLeast)}
	}
	return r
}

// goesOn reports whether a request is a follow-up of an earlier one.
func goesOn(call *mcp.Call, req *mcp.Request) bool {
	return strings.HasPrefix(req.Method, "tasks/") || call != nil && call.Round > 0
}

// toolOf returns the tool of a call.
func toolOf(req *mcp.Request) (string, bool) {
	if req.Method != "tools/call" {
		return "", false
	}
	var name string
	err := json.Unmarshal(req.Param("name"), &name)
	return name, err == nil
}

func matches(pattern, name string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return name == pattern
}

// callerOf returns the key of the caller. A principal never equals an address.
func callerOf(ctx context.Context, call *mcp.Call) string {
	if call != nil && call.Principal != "" {
		return "principal " + call.Principal
	}
	if from, ok := ctx.Value(addressKey{}).(netip.Addr); ok {
		return "address " + from.String()
	}
	return ""
}
