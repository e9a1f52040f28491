package engine

import (
	"context"
	"encoding/json"
	"errors"
)

// Beside is asked the questions of a session beside its client, while that is asked. It returns answers in the order of
// the questions, or an error: then the client's answer counts. It ends with ctx.
type Beside func(ctx context.Context, qs []Question) ([]json.RawMessage, error)

// SetBeside lets somebody beside the client answer the questions of a session. The first answers count; the client is
// then notified that its request is canceled. It is called before the session has calls.
func (s *Session) SetBeside(f Beside) { s.beside = f }

// ErrBeside is the cause by which a question to a client is canceled.
var ErrBeside = errors.New("somebody beside the client has answered")

// askBoth asks the client of a call and somebody beside it.
func (c *Call) askBoth(ctx context.Context, qs []Question, beside Beside) ([]json.RawMessage, error) {
	type outcome struct {
		answers []json.RawMessage
		err     error
	}
	asked, end := context.WithCancelCause(ctx)
	defer end(nil)
	other, stop := context.WithCancel(With(ctx, c))
	client := make(chan outcome, 1)
	go func() { // ends with asked
		defer stop()
		answers, err := c.asker.ask(asked, c, qs)
		client <- outcome{answers, err}
	}()
	answers, err := beside(other, qs)
	stop()
	if err == nil && len(answers) == len(qs) {
		end(ErrBeside)
		<-client
		return answers, nil
	}
	got := <-client
	return got.answers, got.err
}
