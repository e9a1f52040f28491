package doctor

import (
	"context"
)

// atOnce bounds the exams that run at the same time.
const atOnce = 4

// RunAll runs exams, several at the same time, except those that have failed already. It calls done
// with each, in their order, once it and all before it have ended.
func RunAll(ctx context.Context, exams []*Exam, done func(*Exam)) {
	slots := make(chan struct{}, atOnce)
	ended := make([]chan struct{}, len(exams))
	for i, e := range exams {
		ended[i] = make(chan struct{})
		go func() {
			defer close(ended[i])
			slots <- struct{}{}
			defer func() { <-slots }()
			if e.Failed() == nil {
				e.Run(ctx)
			}
		}()
	}
	for i, e := range exams {
		<-ended[i]
		done(e)
	}
}
