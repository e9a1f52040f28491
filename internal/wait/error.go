package wait

// Error says that a request waited in vain and was not sent to its server.
type Error struct {
	Err  error
	Late bool // the wait took too long, and the connection lasts; else the connection or the request has ended
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Unsent returns true: package metrics does not count the request as one to the server.
func (e *Error) Unsent() bool { return true }
