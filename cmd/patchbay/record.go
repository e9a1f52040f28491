package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
	"github.com/patchbay-dev/patchbay/trace/record"
)

// Redaction of --trace: package trace knows the names and forms of secrets; the values that this
// program passes on (secrets.go) are replaced wherever they occur.

// tape is the recording of a run.
type tape struct {
	*trace.Writer
	file io.Closer
}

// recorder returns a function that takes the frames of a connection, for the recordings of --trace
// and --record, and for standard error with --verbose. It returns nil if none of these flags is
// set. The first call opens the recordings.
func (a *app) recorder() (func(trace.Frame), error) {
	var takers []func(trace.Frame)
	if a.Trace != "" {
		if a.tape == nil {
			if err := a.openTape(); err != nil {
				return nil, err
			}
		}
		takers = append(takers, a.tape.Record)
	}
	if a.record.Dir != "" {
		if a.folder == nil {
			if err := a.openFolder(); err != nil {
				return nil, err
			}
		}
		takers = append(takers, a.folder.Record)
	}
	if a.Verbose {
		takers = append(takers, a.shower())
	}
	switch len(takers) {
	case 0:
		return nil, nil
	case 1:
		return takers[0], nil
	}
	return func(f trace.Frame) {
		for _, take := range takers {
			take(f)
		}
	}, nil
}

// shower returns a function that shows messages on standard error.
func (a *app) shower() func(trace.Frame) {
	redactor := a.secrets.Redactor()
	return func(f trace.Frame) {
		if f.Kind != trace.KindMessage || len(f.Msg)+len(f.Raw) == 0 {
			return
		}
		arrow := "←"
		if f.Dir == trace.Out {
			arrow = "→"
		}
		f = redactor.Frame(f)
		a.talk.Always(a.talk.Paint(arrow, "2") + " " + oneLine(string(f.Msg)+string(f.Raw)))
	}
}

// openFolder opens the recording of --record, which is closed like that of --trace.
func (a *app) openFolder() (err error) {
	a.folder, err = record.Open(a.record.Dir, &record.Options{
		MaxBytes: a.record.Bytes,
		MaxAge:   a.record.Age,
		MaxFrame: a.TraceMax,
		Redactor: a.secrets.Redactor(),
		OnFault:  func(err error) { a.talk.Always("patchbay: warning: --record " + visible(err.Error())) },
		OnRight: func(lost int) {
			a.talk.Always("patchbay: --record " + visible(a.record.Dir) + " works again; it lacks " + quantity(lost, "frame"))
		},
	})
	if f := a.deployed; err != nil && f != nil && f.Has("record.dir") {
		return &fault{Code: exitUsage, Err: deploy.Problems{f.Problem("record.dir", "record.dir: "+err.Error(), "name a folder that can be written")}}
	}
	if err != nil {
		return usagef("--record: %w", err).Hint("--record DIR of a folder that can be written")
	}
	a.atEnd = slices.Insert(a.atEnd, 0, func() {
		if err := a.folder.Close(); err != nil {
			a.talk.Always("patchbay: warning: --record " + a.record.Dir + " is incomplete: " + visible(err.Error()))
		}
	})
	return nil
}

// recordState returns the state of the recording of --record; nil: there is none.
func (a *app) recordState() *health.Record {
	if a.folder == nil {
		return nil
	}
	state := a.folder.State()
	r := &health.Record{Dir: a.record.Dir, Lost: state.Lost}
	if state.Fault != nil {
		r.Error = state.Fault.Error()
	}
	return r
}

// openTape opens the recording. It is closed when the program ends, after everything that is
// recorded.
func (a *app) openTape() error {
	var sink io.Writer = talkLines{a.talk}
	var file io.Closer = nopFile{}
	if a.Trace != "-" {
		f, err := ownfile.Sink(a.Trace, os.O_TRUNC, 0o600, a.wire)
		if err != nil {
			return usagef("--trace: %w", err).Hint("--trace -")
		}
		sink, file = f, f
	}
	a.tape = &tape{trace.NewWriter(sink, &trace.WriterOptions{
		MaxFrame: a.TraceMax,
		Redactor: a.secrets.Redactor(),
		OnFault:  func(err error) { a.talk.Always("patchbay: warning: --trace " + visible(err.Error())) },
	}), file}
	a.atEnd = slices.Insert(a.atEnd, 0, func() {
		err := a.tape.Close()
		if errors.Is(err, trace.ErrDropped) {
			a.talk.Always("patchbay: warning: --trace " + a.Trace + " is incomplete: " + visible(err.Error()))
			err = nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			a.talk.Always("patchbay: warning: --trace: " + visible(err.Error()))
		}
	})
	return nil
}

// nopFile is a file that is closed elsewhere.
type nopFile struct{}

func (nopFile) Close() error { return nil }

// talkLines writes whole lines to standard error.
type talkLines struct{ t *terminal.Talk }

func (w talkLines) Write(p []byte) (int, error) {
	w.t.Always(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
