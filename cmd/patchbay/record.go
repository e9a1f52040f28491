package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
)

// Redaction of --trace: package trace knows the names and forms of secrets; the values that this
// program passes on (secrets.go) are replaced wherever they occur.

// tape is the recording of a run.
type tape struct {
	*trace.Writer
	file io.Closer
}

// recorder returns a function that takes the frames of a server's connection, for the recording of
// --trace and for standard error with --verbose. It returns nil if neither flag is set. The first
// call opens the recording.
func (a *app) recorder() (func(trace.Frame), error) {
	if a.Trace != "" && a.tape == nil {
		if err := a.openTape(); err != nil {
			return nil, err
		}
	}
	if !a.Verbose {
		if a.tape == nil {
			return nil, nil
		}
		return a.tape.Record, nil
	}
	redactor := a.secrets.Redactor()
	return func(f trace.Frame) {
		if a.tape != nil {
			a.tape.Record(f)
		}
		if f.Kind != trace.KindMessage || len(f.Msg)+len(f.Raw) == 0 {
			return
		}
		arrow := "←"
		if f.Dir == trace.Out {
			arrow = "→"
		}
		f = redactor.Frame(f)
		a.talk.Always(a.talk.Paint(arrow, "2") + " " + oneLine(string(f.Msg)+string(f.Raw)))
	}, nil
}

// openTape opens the recording. It is closed when the program ends, after everything that is
// recorded.
func (a *app) openTape() error {
	var sink io.Writer = talkLines{a.talk}
	var file io.Closer = nopFile{}
	if a.Trace != "-" {
		f, err := ownfile.Sink(a.Trace, os.O_TRUNC, 0o600, a.wire)
		if err != nil {
			return usagef("--trace: %w", err).hint("--trace -")
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
