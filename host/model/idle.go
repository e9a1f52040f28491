package model

import (
	"context"
	"time"
)

// OnIdle returns a model that calls note each time m, while it answers, has emitted nothing for d.
// The calls of note are on other goroutines, and end before Generate returns.
func OnIdle(m Model, d time.Duration, note func()) Model { return &idle{m, d, note} }

type idle struct {
	Model
	after time.Duration
	note  func()
}

func (i *idle) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error) {
	heard, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(i.after)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				i.note()
			case _, more := <-heard:
				if !more {
					return
				}
				timer.Reset(i.after)
			}
		}
	}()
	defer func() {
		close(heard)
		<-done
	}()
	return i.Model.Generate(ctx, req, func(d Delta) {
		heard <- struct{}{}
		if emit != nil {
			emit(d)
		}
	})
}
