package model

import (
	"fmt"
	"time"
)

// Kind is the kind of a provider's error.
type Kind string

const (
	Limited     Kind = "rate limited"   // too many requests or tokens: retry later
	Overloaded  Kind = "overloaded"     // the provider is busy: retry later
	Unavailable Kind = "unavailable"    // it cannot be reached, failed or broke off: retry
	NoKey       Kind = "not authorized" // the key is missing, wrong or has no right to the model
	NoModel     Kind = "no such model"  // or no such address
	NoMoney     Kind = "no credit left" // the account has no credit left
	TooLong     Kind = "too long"       // the conversation does not fit the window of the model
	Rejected    Kind = "rejected"       // the request is at fault in another way
	Malformed   Kind = "not understood" // the answer does not conform to the provider's API
)

// Error is the error from a provider instead of an answer.
type Error struct {
	Kind    Kind
	Model   string        // name of the model
	Status  int           // of HTTP; 0: there was none
	Message string        // from the provider, or a description of the failure
	After   time.Duration // retry time of the provider; 0: none
	Err     error         // the cause; nil: none
}

func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	text := fmt.Sprintf("%s: %s%s: %s", e.Model, e.Kind, status, e.Message)
	if e.After > 0 {
		text += "; it can be retried after " + e.After.Round(time.Second/10).String()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Transient reports whether the same request may succeed later.
func (e *Error) Transient() bool {
	return e.Kind == Limited || e.Kind == Overloaded || e.Kind == Unavailable
}
