package model

import (
	"fmt"
	"time"
)

// Kind says what to do about an error of a provider.
type Kind string

const (
	Limited     Kind = "rate limited"   // too many requests or tokens: later
	Overloaded  Kind = "overloaded"     // the provider is busy: later
	Unavailable Kind = "unavailable"    // it cannot be reached, failed or broke off: again
	NoKey       Kind = "not let in"     // the key is missing, wrong or has no right to the model
	NoModel     Kind = "no such model"  // or no such address
	NoMoney     Kind = "nothing left"   // the account has no means left
	TooLong     Kind = "too long"       // the conversation does not fit the window of the model
	Rejected    Kind = "rejected"       // the request is at fault in another way
	Malformed   Kind = "not understood" // the answer is none of the provider's API
)

// Error is what a provider has said in place of an answer.
type Error struct {
	Kind    Kind
	Model   string        // whom it was asked of
	Status  int           // of HTTP; 0: there was none
	Message string        // of the provider, or what went wrong
	After   time.Duration // when to ask again, as the provider said; 0: it did not
	Err     error         // the cause; nil: none
}

func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("%s: %s%s: %s", e.Model, e.Kind, status, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Transient tells whether the same request may succeed later.
func (e *Error) Transient() bool {
	return e.Kind == Limited || e.Kind == Overloaded || e.Kind == Unavailable
}
