package mcptest

import (
	"context"
	"errors"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Context returns a context to call a handler with directly. It belongs to a call by a client of
// this process, as with [mcp.Client.Open], that supports every question, waits for the handler and
// replies with answers, in order:
//
//   - for [mcp.Elicit] and [mcp.ElicitForm] a struct or map with the fields of the
//     form, or a bare value if the form has one field;
//   - for [mcp.Confirm] a bool, for [mcp.ElicitURL] nil or true;
//   - for [mcp.Sample] a *mcp.SampleResult or a string, for [mcp.Roots] a []mcp.Root;
//   - [mcp.ErrDeclined] or [mcp.ErrDismissed] for a refusal, another error for a client
//     that fails.
//
// A question without an answer fails the test with the question's text, and so does an unused
// answer. Progress and log messages are dropped.
//
// The call lasts until the Cleanup functions of the test run, and starts no goroutine.
func Context(t testing.TB, answers ...any) context.Context {
	t.Helper()
	script := newScript(t, answers)
	s, err := script.client().Open(context.Background(), mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, errors.New("mcptest: this caller has no server")
	}))
	if err != nil {
		t.Fatalf("mcptest.Context: %v", err)
	}
	ctx, end := engine.Standing(s)
	t.Cleanup(func() {
		end()
		s.Close()
		script.used()
	})
	return ctx
}

// Run calls a handler as a server does and returns its result: live, as for a caller that speaks
// 2025-11-25, where a question waits for its answer; and twice replayed, as for one that speaks
// 2026-07-28, where the handler runs again from the start with each answer. The three runs must ask
// the same questions and end in the same way, or the test fails: the handler then has a side effect
// between two questions that belongs in [mcp.Once].
//
// The answers are as for [Context]; each of the three runs gets all of them. Run cannot find side
// effects that change neither a question nor the result, but they happen more than once: count
// them.
func Run[In, Out any](t testing.TB, handler func(context.Context, In) (Out, error), in In, answers ...any) (Out, error) {
	t.Helper()
	first := runOnce(t, mcp.V2025_11_25, handler, in, answers)
	for _, name := range []string{"replayed", "replayed a second time"} {
		again := runOnce(t, mcp.V2026_07_28, handler, in, answers)
		if got, want := list(again.questions), list(first.questions); got != want {
			t.Errorf("the handler asks different questions when it is %s:\n%s\nlive it asked:\n%s\nput side effects between questions into mcp.Once, and name questions with mcp.QuestionKey", name, got, want)
		}
		if got, want := again.outcome(), first.outcome(); got != want {
			t.Errorf("the handler ends differently when it is %s: %s; live: %s", name, got, want)
		}
	}
	return first.out, first.err
}
