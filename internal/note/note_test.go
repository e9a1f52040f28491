package note

import (
	"context"
	"testing"
)

type recorder struct{ Recorder }

type attempts struct{ Attempts }

// A context has all that was added to it, the last of each kind, and ends with the one that it was made of.
func TestValues(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	first, last, a := &recorder{}, &recorder{}, &attempts{}
	if From(ctx) != nil {
		t.Error("a context has a recorder from nowhere")
	}
	all := With(WithProbing(WithAttempts(With(ctx, first), a)), last)
	if From(all) != Recorder(last) || !Probing(all) || all.Value(attemptsKey{}) != any(a) {
		t.Errorf("recorder %p, probing %t, attempts %v", From(all), Probing(all), all.Value(attemptsKey{}))
	}
	if outer, ok := all.(interface{ AddsValuesTo() context.Context }); !ok || From(outer.AddsValuesTo()) != Recorder(first) {
		t.Error("package engine cannot see through the context")
	}
	cancel(context.DeadlineExceeded)
	if all.Err() == nil || context.Cause(all) != context.DeadlineExceeded {
		t.Errorf("Err %v, cause %v", all.Err(), context.Cause(all))
	}
}
