package model

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// aside is the time for which [Fallback] leaves out a model that has failed.
const aside = 5 * time.Minute

// Fallback returns a model that lets others answer, in their order, while m cannot: its provider is
// overloaded or unavailable, limits requests, or has no credit left. The models should be those of
// [Retry], which tries again first. A model that has failed is left out for 5 minutes, unless all
// have.
//
// Before another model answers, emit is called with [Delta.Again]. The usage of the answer that broke
// off counts, at the price of the model that answers. Info describes that model, or at first m.
func Fallback(m Model, others ...Model) Model {
	f := &fallback{models: append([]Model{m}, others...)}
	f.failed = make([]time.Time, len(f.models))
	return f
}

type fallback struct {
	models []Model

	mu     sync.Mutex
	now    int         // index of the model that answered last; guarded by mu
	failed []time.Time // when each model failed last; guarded by mu
}

func (f *fallback) Info() Info {
	f.mu.Lock()
	m := f.models[f.now]
	f.mu.Unlock()
	return m.Info()
}

// next returns the index of the first model from a number on that is not left out.
func (f *fallback) next(from int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := from; i < len(f.models); i++ {
		if f.failed[i].IsZero() || time.Since(f.failed[i]) >= aside {
			f.now = i
			return i
		}
	}
	if from == 0 {
		f.now = 0
		return 0
	}
	return len(f.models)
}

func (f *fallback) fails(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[i] = time.Now()
}

func (f *fallback) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error) {
	var before Usage
	for i := f.next(0); ; {
		res, err := f.models[i].Generate(ctx, req, emit)
		var failed *Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) || !failed.Transient() && failed.Kind != NoMoney {
			return withUsage(res, before), err
		}
		f.fails(i)
		if i = f.next(i + 1); i == len(f.models) {
			return withUsage(res, before), err
		}
		var lost Usage // of the last attempt; emit got those before
		if res != nil {
			before.Add(res.Usage)
			lost = res.Usage.less(res.Retried)
		}
		if emit != nil {
			emit(Delta{Again: fmt.Sprintf("%v; %s answers", failed, f.models[i].Info().Name), Lost: lost})
		}
	}
}
