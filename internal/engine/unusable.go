package engine

import "fmt"

// UnusableError is the error of a request to which a server has given something that is not an answer, such as a
// web page. The request may have run.
type UnusableError struct{ text string }

// Unusable makes an [*UnusableError]. It wraps nothing, because the error of an unreadable message must not look
// like a JSON-RPC error of the server.
func Unusable(format string, args ...any) error { return &UnusableError{fmt.Sprintf(format, args...)} }

func (e *UnusableError) Error() string { return e.text }

// Unusable returns true, for the packages that do not import this one.
func (e *UnusableError) Unusable() bool { return true }
