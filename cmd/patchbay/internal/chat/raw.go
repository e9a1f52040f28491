package chat

import (
	"os"

	"golang.org/x/term"
)

// rawState is the state of a terminal before raw mode.
type rawState struct {
	in     *os.File
	state  *term.State
	output func() // restores the output
}

// raw switches the input of a terminal to raw mode, and enables escape sequences on its output.
func raw(in, out *os.File) (*rawState, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return &rawState{in, state, prepareOutput(out)}, nil
}

func (r *rawState) restore() {
	if r == nil {
		return
	}
	_ = term.Restore(int(r.in.Fd()), r.state)
	r.output()
}
