package chat

import (
	"os"

	"golang.org/x/term"
)

// rawState is how a terminal was before keys were read one by one.
type rawState struct {
	in     *os.File
	state  *term.State
	output func() // gives the output back as it was
}

// raw has the keys of a terminal read one by one, and its output obeyed.
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
