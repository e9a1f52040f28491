package terminal

import (
	"os"

	"golang.org/x/term"
)

// RawState is the state of a terminal before raw mode.
type RawState struct {
	in     *os.File
	state  *term.State
	output func() // restores the output
}

// Raw switches the input of a terminal to raw mode, and enables escape sequences on its output.
func Raw(in, out *os.File) (*RawState, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return &RawState{in, state, prepareOutput(out)}, nil
}

// Restore ends raw mode. For nil it does nothing.
func (r *RawState) Restore() {
	if r == nil {
		return
	}
	_ = term.Restore(int(r.in.Fd()), r.state)
	r.output()
}

// Release prepares the terminal for another program that the person uses until Raw is called again. ctrl-C
// is a key for it and does not interrupt this program. For nil it does nothing.
func (r *RawState) Release() {
	if r == nil {
		return
	}
	r.Restore()
	withoutInterrupt(r.in)
}
