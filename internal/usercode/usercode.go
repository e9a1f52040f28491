// Package usercode runs user code of the SDK: handlers, hooks, middleware, stores. A failure in
// it fails only one call.
//
// [Runner.Run] is the only place where such code is called; a test in internal/layers
// finds calls elsewhere.
//
// # Guarantees
//
//   - A panic becomes an error without detail. The value and the stack go to the report.
//   - So does an error that cannot be used: a nil pointer in an error interface, an Error,
//     Unwrap, As or Is method that panics, a chain of errors without an end.
//   - A call of runtime.Goexit, which testing.T.FailNow makes, is reported. It cannot be stopped:
//     a caller that must answer does so in a deferred function.
//
// A stack overflow and a concurrent write to a map end the process; no Go program can
// recover from them.
package usercode

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"runtime/debug"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ErrGoexit is reported for code that ended its goroutine.
var ErrGoexit = errors.New("runtime.Goexit was called, perhaps by testing.T.FailNow")

// A Runner runs user code. Nil and the zero value are ready for use. Its fields must not change
// after the first Run.
type Runner struct {
	// OnPanic is called with each panic. If nil, panics are logged.
	OnPanic func(ctx context.Context, v any, stack []byte)

	// Logger logs panics. Nil means the standard logger of package log, as in net/http.
	Logger *slog.Logger
}

// Failed returns the error for a panic: an internal error without detail.
func Failed() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
}

// Run calls f, which is or calls user code, and returns its error. The argument where names that
// code in reports, such as "tools/call" or "Client.OnElicit". After a panic, or if the error cannot
// be used, the error is that of [Failed].
//
// f runs on the goroutine of the caller. If f ends the goroutine, Run does not return.
func (r *Runner) Run(ctx context.Context, where string, f func() error) (err error) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		if v == nil { // since Go 1.21 panic(nil) is not nil here
			v = ErrGoexit
		}
		err = Failed()
		r.report(ctx, where, v, debug.Stack())
	}()
	if err = f(); err != nil {
		prove(err)
	}
	done = true
	return err
}

// report reports a panic. OnPanic is user code too.
func (r *Runner) report(ctx context.Context, where string, v any, stack []byte) {
	defer func() {
		if again := recover(); again != nil {
			log.Printf("mcp: panic in OnPanic: %v\n%s", again, debug.Stack())
		}
	}()
	switch {
	case r != nil && r.OnPanic != nil:
		r.OnPanic(ctx, v, stack)
	case r != nil && r.Logger != nil:
		r.Logger.ErrorContext(ctx, "panic", "in", where, "err", fmt.Sprint(v), "stack", string(stack))
	default:
		log.Printf("mcp: panic in %s: %v\n%s", where, v, stack)
	}
}

// maxChain bounds the errors that one error wraps.
const maxChain = 1000

// prove panics unless err is usable, because callers use its Error method and its chain.
func prove(err error) {
	if e, ok := err.(*jsonrpc.Error); ok && e != nil {
		return
	}
	left := maxChain
	proveChain(err, &left)
	var rpc *jsonrpc.Error
	errors.As(err, &rpc)
	_ = errors.Is(err, context.Canceled)
}

func proveChain(err error, left *int) {
	for err != nil {
		if *left--; *left < 0 {
			panic(fmt.Errorf("an error of type %T wraps more than %d others, or itself", err, maxChain))
		}
		_ = err.Error()
		switch w := err.(type) {
		case interface{ Unwrap() error }:
			err = w.Unwrap()
		case interface{ Unwrap() []error }:
			for _, e := range w.Unwrap() {
				proveChain(e, left)
			}
			return
		default:
			return
		}
	}
}
