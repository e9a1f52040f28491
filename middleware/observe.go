package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Outcome is how a request ended.
type Outcome string

const (
	OK        Outcome = "ok"
	ToolError Outcome = "tool error" // the tool failed: a result with isError
	Question  Outcome = "question"   // the result asks the caller, which sends the request again with the answer (2026-07-28)
	Task      Outcome = "task"       // the call goes on as a task; [mcp.TaskConfig] reports its end to OnEnd
	Denied    Outcome = "denied"     // by an [mcp.Denial]: no permission, refused by a policy, or over a rate limit
	Canceled  Outcome = "canceled"   // the caller canceled the request, or has gone, and the request failed; the usual end of subscriptions/listen
	Failed    Outcome = "error"      // a JSON-RPC error, or the server shut down before the answer
)

// Record describes a request that has ended.
type Record struct {
	Method   string // of revision 2026-07-28: "tools/call", and "server/discover" for initialize
	Name     string // of the tool or prompt, URI of the resource, or id of the task; empty: the method has none
	Caller   string // the authenticated principal; empty: there is none
	ID       string // of the JSON-RPC request; empty: it is a request of this process
	Duration time.Duration
	Outcome  Outcome
	Code     int   // of the JSON-RPC error; zero: there is none. An error without a code counts as jsonrpc.CodeInternal
	Err      error // returned by the next Handler
}

// Observe returns a middleware that calls f at the end of each request, before the answer is sent.
// The context is that of the request, so that [mcp.CallFrom] describes the client. f may be called
// by several goroutines at once, and the answer waits for it.
func Observe(f func(ctx context.Context, r Record)) mcp.Middleware {
	if f == nil {
		panic(errors.New("middleware: Observe: the function is nil"))
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			r := Record{Method: req.Method, Name: nameOf(req), Caller: principal.From(ctx)}
			if call := engine.From(ctx); call != nil && call.Msg != nil && !call.Msg.ID.IsZero() {
				r.ID = call.Msg.ID.String()
			}
			start := time.Now()
			res, err := next.Handle(ctx, req)
			r.Duration, r.Err = time.Since(start), err
			if r.Outcome, r.Code = outcomeOf(ctx, res, err); r.Outcome == Failed && req.Method == "subscriptions/listen" && outcome.ShutDown(ctx) {
				r.Outcome, r.Code = Canceled, 0
			}
			f(ctx, r)
			return res, err
		})
	}
}

// nameOf returns the name in the params of a request, empty if there is none.
func nameOf(req *mcp.Request) string {
	switch req.Method {
	case "tools/call", "prompts/get":
		return stringOf(req.Param("name"))
	case "resources/read":
		return stringOf(req.Param("uri"))
	case "tasks/get", "tasks/update", "tasks/cancel":
		return stringOf(req.Param("taskId"))
	case "completion/complete":
		ref := req.Param("ref")
		for _, member := range []string{"name", "uri"} {
			if v, ok := jsonx.Lookup(ref, member); ok {
				return stringOf(v)
			}
		}
	}
	return ""
}

func stringOf(raw json.RawMessage) string {
	s, _ := jsonx.Unquote(raw)
	return s
}

// outcomes are the words for requests that have ended while their callers waited.
var outcomes = [...]Outcome{
	outcome.Result: OK, outcome.Question: Question, outcome.Task: Task, outcome.Tool: ToolError,
	outcome.Denial: Denied, outcome.Deadline: Failed, outcome.Caller: Failed, outcome.Lost: Failed, outcome.Server: Failed,
	outcome.Unlogged: Failed, outcome.Waited: Failed,
}

// outcomeOf returns how a request ended, and the code of its error.
func outcomeOf(ctx context.Context, res mcp.Result, err error) (Outcome, int) {
	e := outcome.Of(ctx, res, err)
	switch {
	case e.Cause == outcome.Lost:
	case e.Failed() && (errors.Is(e.Ctx, context.Canceled) || e.Ctx != nil && e.Err):
		return Canceled, 0
	case e.Failed() && !e.Err: // a result with isError, after Limits.CallTimeout too
		return ToolError, 0
	}
	return outcomes[e.Cause], e.Code
}
