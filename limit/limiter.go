package limit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A Limiter bounds requests by who sends them. Its fields are read when it is first used and
// not changed after. The zero value bounds nothing. It may be used by several goroutines.
type Limiter struct {
	// Caller bounds the requests of each caller.
	Caller Rate

	// Tools bounds the calls of tools, of each caller. A name that ends in "*" stands for all
	// tools that begin with the rest, together.
	Tools map[string]Rate

	// Concurrent bounds the requests of each caller that are at work, without subscriptions.
	// Zero: no bound.
	Concurrent int

	// Address bounds the HTTP requests of each address, whatever they are: also those of
	// callers who are not let in. It is that of the connection; of IPv6 it is the network, a
	// /64.
	Address Rate

	// Proxies are trusted to say in X-Forwarded-For where a request came from.
	Proxies []netip.Prefix

	known buckets
}

// Error says that a caller has to wait. It reaches callers as an [*mcp.Error] with
// [mcp.CodeInternal] and the data {"retryAfter": SECONDS}, and over HTTP with status 429.
type Error struct {
	What       string        // there is too much of
	RetryAfter time.Duration // when it may be tried again
}

// Error says what there is too much of, and for how long.
func (e *Error) Error() string {
	return fmt.Sprintf("%s; try again in %d s", e.What, e.seconds())
}

// seconds is the time to wait in whole seconds, at least one.
func (e *Error) seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Unwrap returns the error as callers get it, an [*mcp.Error].
func (e *Error) Unwrap() error { return e.rpc() }

func (e *Error) rpc() *mcp.Error {
	return &mcp.Error{Code: mcp.CodeInternal, Message: e.Error(), Data: json.RawMessage(fmt.Sprintf(`{"retryAfter":%d}`, e.seconds()))}
}

// Limit is an [mcp.Middleware] that answers requests that are too many with an [*Error].
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
		return func() {}, nil // of the session itself, for what it has opened or subscribed to
	}
	who := callerOf(ctx, call)
	now := time.Now()
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	b := l.known.of(key{caller, who, ""}, l.Caller)
	if l.Concurrent > 0 && !listens && b.running >= l.Concurrent {
		return nil, &Error{fmt.Sprintf("%d requests of this caller are at work, the most there may be", b.running), time.Second}
	}
	takes := []*bucket{b}
	if goesOn(call, req) {
		takes[0] = l.known.of(key{further, who, ""}, l.further())
	} else if tool, ok := toolOf(req); ok {
		for pattern, r := range l.Tools {
			if matches(pattern, tool) {
				takes = append(takes, l.known.of(key{ofTool, who, pattern}, r))
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
		what := fmt.Sprintf("more requests than %s of one caller", late.rate)
		switch late.kind {
		case ofTool:
			what = fmt.Sprintf("more calls of %q than %s of one caller", late.tool, late.rate)
		case further:
			what = fmt.Sprintf("more answers and requests about tasks than %s of one caller", late.rate)
		}
		return nil, &Error{what, wait}
	}
	for _, t := range takes {
		t.take(now)
	}
	if listens {
		return func() {}, nil
	}
	b.running++
	return func() {
		l.known.mu.Lock()
		defer l.known.mu.Unlock()
		b.running--
	}, nil
}

// What goes on with something may come so much faster than what begins something, and at
// least so fast: a task is asked after again and again, and has many questions.
const (
	furtherTimes = 16
	furtherLeast = 20 // a second
)

// further is the rate of what goes on with something.
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

// goesOn tells whether a request belongs to what an earlier one began.
func goesOn(call *mcp.Call, req *mcp.Request) bool {
	return strings.HasPrefix(req.Method, "tasks/") || call != nil && call.Round > 0
}

// toolOf names the tool of a call.
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

// callerOf names who calls. A principal is never taken for an address.
func callerOf(ctx context.Context, call *mcp.Call) string {
	if call != nil && call.Principal != "" {
		return "principal " + call.Principal
	}
	if from, ok := ctx.Value(addressKey{}).(netip.Addr); ok {
		return "address " + from.String()
	}
	return ""
}
