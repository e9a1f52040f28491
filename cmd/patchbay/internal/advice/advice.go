// Package advice has the errors of the program: each has an exit code and the next step for a
// person.
package advice

import (
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/process"
)

// The exit codes of the program. They are documented in "patchbay help exits" and
// do not change.
const (
	ExitOK           = 0
	ExitLocal        = 1
	ExitUsage        = 2
	ExitUnauthorized = 3
	ExitUnreachable  = 4
	ExitAnswer       = 5                // the tool or the server answered with an error
	ExitRefused      = 6                // policy check, gateway explain: the call is refused; audit verify: the log was changed
	ExitModel        = 7                // the language model or its provider gave no answer, or refused
	ExitBound        = 8                // the task was not done within its steps, time, tokens or cost, or its answer was cut off
	ExitDenied       = 9                // a call was not allowed, and nobody could be asked
	ExitFormat       = 10               // the answer does not fit --output-schema
	ExitLoop         = process.ExitLoop // the program would serve or start itself
	ExitInterrupted  = 130              // ctrl-C or another signal ended it, as shells say
)

// Error is an error with advice for a person.
type Error struct {
	Code   int // exit code; 0: that of Err
	Err    error
	Detail string // lines to show below, for instance the last output of a server
	Next   string // a command to paste
}

func (f *Error) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Error) Unwrap() error { return f.Err }

// Hint sets the next step. It returns f.
func (f *Error) Hint(command string) *Error {
	f.Next = command
	return f
}

// Words returns the text of an error for a person, without the name of the package that some errors begin with.
func Words(err error) string { return strings.TrimPrefix(err.Error(), "host: ") }

// Usagef returns the error for a wrong command line.
func Usagef(format string, args ...any) *Error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}
