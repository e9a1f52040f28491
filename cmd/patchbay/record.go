package main

import (
	"slices"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/recording"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/trace"
)

// recorder returns a function that takes the frames of a connection, for the recordings of --trace
// and --record, for standard error with --verbose, and for a page, and what switches it. It returns nil
// if nothing takes frames. The first call opens the recordings.
func (a *app) recorder() (func(trace.Frame), *atomic.Bool, error) {
	if a.frames == nil {
		a.frames = &recording.Frames{
			Trace: a.Trace, MaxFrame: a.TraceMax, Record: a.record, Verbose: a.Verbose, Tee: a.tee, Deployed: a.deployed, Redactor: a.secrets.Redactor, Talk: a.talk, Wire: a.wire,
			AtEnd: func(end func()) { a.atEnd = slices.Insert(a.atEnd, 0, end) },
		}
	}
	return a.frames.Taker()
}

// recordState returns the state of the recording of --record; nil: there is none.
func (a *app) recordState() *health.Record {
	if a.frames == nil {
		return nil
	}
	return a.frames.State()
}
