package mcp

import (
	"context"
	"fmt"
	"time"
)

// A LimitError says that a call was given up as its time was over. The server was told, and what
// it answers later is dropped. It is context.DeadlineExceeded to errors.Is.
type LimitError struct {
	Limit time.Duration

	// Total tells that the whole call took so long (Limits.CallLimit). Otherwise nothing was heard
	// of it for so long (Limits.CallTimeout or IdleTimeout).
	Total bool
}

func (e *LimitError) Error() string {
	if e.Total {
		return fmt.Sprintf("the call took longer than %v (Limits.CallLimit)", e.Limit)
	}
	return fmt.Sprintf("the server said nothing for %v (Limits.CallTimeout)", e.Limit)
}

func (e *LimitError) Unwrap() error { return context.DeadlineExceeded }
