package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryOptions configure [Retry]. Nil and the zero value mean the defaults.
type RetryOptions struct {
	Attempts int           // maximum attempts, with the first; 0: 5
	Wait     time.Duration // before the second attempt; twice as long before each further one; 0: 1 second
	MaxWait  time.Duration // the longest wait between two attempts; 0: 1 minute

	// First bounds the time until an answer begins, and Idle the silence after that. Models may
	// think for a long time before the first word, and local ones read for a long time. A longer
	// silence is an error of kind [Unavailable], which is retried. 0: 5 and 2 minutes.
	First, Idle time.Duration
}

// Retry returns a model that retries requests to m after transient errors ([Error.Transient]).
//
// The backoff doubles with each attempt, with jitter, and is at least [Error.After]: if that is
// more than [RetryOptions.MaxWait], the error is returned at once. The last error is returned
// unchanged, with the beginning of the last answer. A model that Retry has returned, such as those of package provider,
// gets these options in place of its own.
//
// Before each wait it calls emit with [Delta.Again]. Deltas without a field count as signs of
// life and are not passed on. Cancelling ctx ends waits and answers at once. The usage is that of
// all attempts, since providers bill for answers that broke off, too.
func Retry(m Model, o *RetryOptions) Model {
	if inner, ok := m.(*retry); ok {
		m = inner.Model
	}
	r := &retry{Model: m}
	if o != nil {
		r.o = *o
	}
	if r.o.Attempts <= 0 {
		r.o.Attempts = 5
	}
	for _, d := range []struct {
		field *time.Duration
		or    time.Duration
	}{
		{&r.o.Wait, time.Second},
		{&r.o.MaxWait, time.Minute},
		{&r.o.First, 5 * time.Minute},
		{&r.o.Idle, 2 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.or
		}
	}
	return r
}

type retry struct {
	Model
	o RetryOptions
}

func (r *retry) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error) {
	wait := r.o.Wait
	var before Usage // of the attempts before
	for attempt := 1; ; attempt++ {
		resp, err := r.once(ctx, req, emit)
		var failed *Error
		if err == nil || ctx.Err() != nil || attempt == r.o.Attempts || !errors.As(err, &failed) || !failed.Transient() || failed.After > r.o.MaxWait {
			return withUsage(resp, before), err
		}
		wait = min(wait, r.o.MaxWait)
		pause := wait/2 + rand.N(wait/2+1)
		if failed.After > 0 {
			pause = failed.After + rand.N(wait/2+1)
		}
		wait *= 2
		var lost Usage
		if resp != nil {
			lost = resp.Usage
		}
		if emit != nil {
			brief := *failed
			brief.After = 0 // the pause is about as long
			emit(Delta{Again: fmt.Sprintf("%v; retrying in %v", &brief, pause.Round(100*time.Millisecond)), Lost: lost})
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil { // also if emit has ended it, and the pause is over
			return withUsage(resp, before), context.Cause(ctx)
		}
		before.Add(lost)
	}
}

// withUsage returns a response with the usage of the attempts before it. The response may be nil.
func withUsage(resp *Response, before Usage) *Response {
	if before == (Usage{}) {
		return resp
	}
	out := Response{Message: Message{Role: Assistant}}
	if resp != nil {
		out = *resp
	}
	out.Usage.Add(before)
	out.Retried.Add(before)
	return &out
}

// errSilent ends an attempt without data for too long.
var errSilent = errors.New("no data for too long")

// once makes one attempt, under the bounds of silence. The time that emit takes does not count.
func (r *retry) once(parent context.Context, req *Request, emit func(Delta)) (*Response, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	bound := r.o.First
	watch := time.AfterFunc(bound, func() { cancel(errSilent) })
	defer watch.Stop()
	resp, err := r.Model.Generate(ctx, req, func(d Delta) {
		watch.Stop()
		if emit != nil && d != (Delta{}) {
			emit(d)
		}
		bound = r.o.Idle
		watch.Reset(bound)
	})
	if err != nil && parent.Err() == nil && context.Cause(ctx) == errSilent {
		err = &Error{Kind: Unavailable, Model: r.Info().Name, Message: fmt.Sprintf("no data for %v", bound), Err: err}
	}
	return resp, err
}
