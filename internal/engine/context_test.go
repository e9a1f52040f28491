package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

type testKey struct{}

// A Context behaves like one of the standard library, whether it is waited for before its end or
// read afterwards, and leaves no goroutine behind.
func TestContextEnds(t *testing.T) {
	gone, given := errors.New("gone"), errors.New("given")
	parentCause := errors.New("of the parent")
	for _, tt := range []struct {
		name   string
		gone   error
		end    func(c *Context, parent context.CancelCauseFunc)
		cause  error // nil: it does not end
		parent bool  // the parent ends
	}{
		{"by Cancel", nil, func(c *Context, _ context.CancelCauseFunc) { c.Cancel(given); c.Cancel(gone) }, given, false},
		{"by Cancel(nil)", nil, func(c *Context, _ context.CancelCauseFunc) { c.Cancel(nil) }, context.Canceled, false},
		{"by its parent", nil, func(_ *Context, end context.CancelCauseFunc) { end(parentCause) }, parentCause, true},
		{"by its parent, with a cause of its own", gone, func(_ *Context, end context.CancelCauseFunc) { end(parentCause) }, gone, true},
		{"not by its parent", ErrNever, func(_ *Context, end context.CancelCauseFunc) { end(parentCause) }, nil, true},
		{"by Cancel, detached", ErrNever, func(c *Context, end context.CancelCauseFunc) { end(parentCause); c.Cancel(given) }, given, true},
	} {
		for _, early := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, end := context.WithCancelCause(context.WithValue(t.Context(), testKey{}, "value"))
					defer end(nil)
					c := &Context{}
					c.Init(parent, tt.gone)
					defer c.Cancel(nil)
					var child context.Context
					told := make(chan struct{}, 1)
					watch := func() {
						var cancel context.CancelFunc
						child, cancel = context.WithTimeout(c, time.Hour)
						t.Cleanup(cancel)
						context.AfterFunc(c, func() { told <- struct{}{} })
					}
					wake := make(chan struct{}, 1)
					over := func() bool {
						defer Sleep(c, wake)
						return ended(Rouse(c, wake), wake)
					}
					if over() { // before watch: Rouse does not need the channels that watch makes
						t.Error("Rouse tells of an end before it")
					}
					if early {
						watch()
					}
					if c.Err() != nil {
						t.Errorf("Err() = %v before the end", c.Err())
					}
					tt.end(c, end)
					if !early {
						watch()
					}
					synctest.Wait()
					want := tt.cause != nil
					if over() != want {
						t.Errorf("Ends tells of an end: %t, want %t", !want, want)
					}
					if (c.Err() != nil) != want || (child.Err() != nil) != want || (len(told) == 1) != want {
						t.Fatalf("Err() = %v, of the child %v, told %d times; want an end: %t", c.Err(), child.Err(), len(told), want)
					}
					if want && (context.Cause(c) != tt.cause || context.Cause(child) != tt.cause || c.Err() != context.Canceled) {
						t.Errorf("cause %v, of the child %v, error %v; want the cause %v", context.Cause(c), context.Cause(child), c.Err(), tt.cause)
					}
					if c.Value(testKey{}) != "value" || child.Value(testKey{}) != "value" {
						t.Error("a value of the parent is lost")
					}
				})
			})
		}
	}
}

// ended reports whether one of the channels, each of which may be nil, has a value or is closed.
func ended(cs ...<-chan struct{}) bool {
	for _, c := range cs {
		select {
		case <-c:
			return true
		default:
		}
	}
	return false
}

// Nothing is sent to a channel after Sleep, so that it can be reused.
func TestSleep(t *testing.T) {
	c, p := &Context{}, &Part{}
	c.Init(t.Context(), nil)
	p.Init(c, nil)
	wake := make(chan struct{}, 1)
	Rouse(p, wake)
	Sleep(p, wake)
	p.Cancel(nil)
	c.Cancel(nil)
	if ended(wake) {
		t.Error("the end of a context is told after Sleep")
	}
}

// addsValues is a context of another package that only adds values.
type addsValues struct{ context.Context }

func (c addsValues) AddsValuesTo() context.Context { return c.Context }

// Rouse sees a call through contexts that only add values, so that the call needs no Done channel.
func TestRouseThroughValues(t *testing.T) {
	c, p := &Context{}, &Part{}
	c.Init(t.Context(), ErrNever)
	p.Init(addsValues{c}, nil)
	ctx := With(addsValues{addsValues{p}}, &Call{})
	wake := make(chan struct{}, 1)
	if end := Rouse(ctx, wake); end != nil || p.full != nil || c.full != nil {
		t.Error("Rouse has made a Done channel")
	}
	c.Cancel(nil)
	if !ended(wake) || ctx.Err() == nil {
		t.Errorf("the end of the call is not told, Err() = %v", ctx.Err())
	}
	Sleep(ctx, wake)
	if p.wake != nil || c.wake != nil {
		t.Error("Sleep has not undone Rouse")
	}
}

// A Part of a call ends by Cancel, with the call and with the call's parent, and returns the
// cause; the call goes on when a part of it ends.
func TestPartEnds(t *testing.T) {
	own, ofCall, above := errors.New("own"), errors.New("of the call"), errors.New("above")
	for _, tt := range []struct {
		name string
		end  func(p *Part, c *Context, parent context.CancelCauseFunc)
		want error
		call bool // the call ends
	}{
		{"by itself", func(p *Part, _ *Context, _ context.CancelCauseFunc) { p.Cancel(own); p.Cancel(above) }, own, false},
		{"with the call", func(_ *Part, c *Context, _ context.CancelCauseFunc) { c.Cancel(ofCall) }, ofCall, true},
		{"with what the call belongs to", func(_ *Part, _ *Context, end context.CancelCauseFunc) { end(above) }, above, true},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				parent, end := context.WithCancelCause(t.Context())
				defer end(nil)
				c := &Context{}
				c.Init(parent, nil)
				defer c.Cancel(nil)
				c.call.Msg = &jsonrpc.Message{}
				p := &Part{}
				p.Init(c, nil)
				defer p.Cancel(nil)
				if whole {
					_ = p.Done()
				}
				wake, other, late := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
				one, two := Rouse(p, wake), Rouse(p, other)
				if ended(one, two, wake, other) || p.Err() != nil || From(p) != &c.call {
					t.Fatalf("before its end: ended %t, Err() = %v, call %p", ended(one, two, wake, other), p.Err(), From(p))
				}
				tt.end(p, c, end)
				first, second := ended(one, wake), ended(two, other)
				Sleep(p, wake)
				Sleep(p, other)
				if !first || !second || !ended(Rouse(p, late), late) || p.Err() != context.Canceled || context.Cause(p) != tt.want {
					t.Errorf("ended %t and %t, Err() = %v, cause %v; want %v", first, second, p.Err(), context.Cause(p), tt.want)
				}
				if (c.Err() != nil) != tt.call {
					t.Errorf("the call has ended: %t, want %t", c.Err() != nil, tt.call)
				}
			})
		}
	}
}

// The deadline of the parent applies unless the context outlives its parent.
func TestContextDeadline(t *testing.T) {
	parent, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for gone, want := range map[error]bool{nil: true, ErrNever: false} {
		var c Context
		c.Init(parent, gone)
		if _, ok := c.Deadline(); ok != want {
			t.Errorf("with %v: has a deadline: %t, want %t", gone, ok, want)
		}
		c.Cancel(nil)
	}
}

// The call of a context is found from its child contexts.
func TestContextCall(t *testing.T) {
	var c Context
	c.Init(t.Context(), nil)
	defer c.Cancel(nil)
	if From(&c) != nil {
		t.Error("a call before there is one")
	}
	c.call.Msg = &jsonrpc.Message{}
	child, cancel := context.WithCancel(&c)
	defer cancel()
	if From(&c) != &c.call || From(child) != &c.call {
		t.Error("the call is not found")
	}
}
