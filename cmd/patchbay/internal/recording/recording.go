// Package recording gives the frames of a run to all that take them: the file of --trace, the folder of --record, standard
// error with --verbose, and a page.
//
// Package trace knows the names and forms of secrets; the values that this program passes on (package secrets) are
// replaced wherever they occur.
package recording

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
	"github.com/patchbay-dev/patchbay/trace/record"
)

// Frames are the frames of a run. The fields are set before Taker.
type Frames struct {
	Trace    string        // file of --trace; "-": standard error; empty: none
	MaxFrame int           // bytes of a frame that are kept
	Record   deploy.Record // --record; without Dir there is none
	Verbose  bool          // show messages on standard error
	Tee      *trace.Tee    // takers that come and go, such as a page; nil: none

	Deployed *deploy.File           // gateway.yaml, for the place of a fault; nil: none
	Redactor func() *trace.Redactor // of this run
	Talk     *terminal.Talk
	Wire     any          // standard output if it belongs to a client, else nil
	AtEnd    func(func()) // has a function called at the end of the program, before those that it was given before

	opened bool
	takers []func(trace.Frame)
	folder *record.Folder // nil: none
}

// Taker returns what takes the frames of a connection, and what switches it; nil: nothing takes them, or they are always
// taken. The first call opens the recordings. It is for one goroutine.
func (f *Frames) Taker() (take func(trace.Frame), watched *atomic.Bool, err error) {
	if !f.opened {
		if err := f.open(); err != nil {
			return nil, nil, err
		}
		f.opened = true
	}
	switch {
	case f.Tee != nil && len(f.takers) == 0:
		return f.Tee.Record, f.Tee.Watched(), nil
	case len(f.takers) == 0:
		return nil, nil, nil
	}
	all := f.takers
	if f.Tee != nil {
		all = append(all[:len(all):len(all)], f.Tee.Record)
	}
	if len(all) == 1 {
		return all[0], nil, nil
	}
	return func(frame trace.Frame) {
		for _, take := range all {
			take(frame)
		}
	}, nil, nil
}

func (f *Frames) open() error {
	f.takers = nil
	if f.Trace != "" {
		w, err := f.openTape()
		if err != nil {
			return err
		}
		f.takers = append(f.takers, w.Record)
	}
	if f.Record.Dir != "" {
		if err := f.openFolder(); err != nil {
			return err
		}
		f.takers = append(f.takers, f.folder.Record)
	}
	if f.Verbose {
		f.takers = append(f.takers, f.shower())
	}
	return nil
}

// shower returns a function that shows messages on standard error.
func (f *Frames) shower() func(trace.Frame) {
	redactor := f.Redactor()
	return func(frame trace.Frame) {
		if frame.Kind != trace.KindMessage || len(frame.Msg)+len(frame.Raw) == 0 {
			return
		}
		arrow := "←"
		if frame.Dir == trace.Out {
			arrow = "→"
		}
		frame = redactor.Frame(frame)
		f.Talk.Always(f.Talk.Paint(arrow, "2") + " " + screen.OneLine(string(frame.Msg)+string(frame.Raw)))
	}
}

// openFolder opens the recording of --record, which is closed like that of --trace.
func (f *Frames) openFolder() (err error) {
	f.folder, err = record.Open(f.Record.Dir, &record.Options{
		MaxBytes: f.Record.Bytes,
		MaxAge:   f.Record.Age,
		MaxFrame: f.MaxFrame,
		Redactor: f.Redactor(),
		OnFault:  func(err error) { f.warn("--record " + screen.Visible(err.Error())) },
		OnRight: func(lost int) {
			f.Talk.Always("patchbay: --record " + screen.Visible(f.Record.Dir) + " works again; it lacks " + screen.Quantity(lost, "frame"))
		},
	})
	if d := f.Deployed; err != nil && d != nil && d.Has("record.dir") {
		return &advice.Error{Code: advice.ExitUsage, Err: deploy.Problems{d.Problem("record.dir", "record.dir: "+err.Error(), "name a folder that can be written")}}
	}
	if err != nil {
		return advice.Usagef("--record: %w", err).Hint("--record DIR of a folder that can be written")
	}
	f.AtEnd(func() {
		if err := f.folder.Close(); err != nil {
			f.warn("--record " + f.Record.Dir + " is incomplete: " + screen.Visible(err.Error()))
		}
	})
	return nil
}

func (f *Frames) warn(text string) { f.Talk.Always("patchbay: warning: " + text) }

// State returns the state of the recording of --record; nil: there is none.
func (f *Frames) State() *health.Record {
	if f.folder == nil {
		return nil
	}
	state := f.folder.State()
	r := &health.Record{Dir: f.Record.Dir, Lost: state.Lost}
	if state.Fault != nil {
		r.Error = state.Fault.Error()
	}
	return r
}

// openTape opens the recording of --trace. It is closed when the program ends, after everything that is
// recorded.
func (f *Frames) openTape() (*trace.Writer, error) {
	var sink io.Writer = terminal.Lines{Talk: f.Talk}
	closer := func() error { return nil }
	if f.Trace != "-" {
		file, err := ownfile.Sink(f.Trace, os.O_TRUNC, 0o600, f.Wire)
		if err != nil {
			return nil, advice.Usagef("--trace: %w", err).Hint("--trace -")
		}
		sink, closer = file, file.Close
	}
	w := trace.NewWriter(sink, &trace.WriterOptions{
		MaxFrame: f.MaxFrame,
		Redactor: f.Redactor(),
		OnFault:  func(err error) { f.warn("--trace " + screen.Visible(err.Error())) },
	})
	f.AtEnd(func() {
		err := w.Close()
		if errors.Is(err, trace.ErrDropped) {
			f.warn("--trace " + f.Trace + " is incomplete: " + screen.Visible(err.Error()))
			err = nil
		}
		if err := errors.Join(err, closer()); err != nil {
			f.warn("--trace: " + screen.Visible(err.Error()))
		}
	})
	return w, nil
}
