package breaker

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Kind says how a request has failed.
type Kind uint8

const (
	Lost      Kind = iota + 1 // the connection was lost
	TimedOut                  // a time limit was reached
	BadStatus                 // a status of 500 and more
	Internal                  // the error -32603
	Unusable                  // an answer that is not one to the request, such as a web page
	Refused                   // a replica refuses what another one answers, see [Breaker.Fail]
	Silent                    // it answers no ping, see [Breaker.Trip]

	kinds
)

var kindNames = [kinds]string{"", "lost", "timeout", "status", "internal", "unusable", "refused", "silent"}

// String returns the kind in a word, such as "timeout".
func (k Kind) String() string {
	if k >= kinds {
		return ""
	}
	return kindNames[k]
}

// Kinds returns all kinds of failures.
func Kinds() []Kind { return []Kind{Lost, TimedOut, BadStatus, Internal, Unusable, Refused, Silent} }

// Counts is a number of failures for each [Kind].
type Counts [kinds]int

// KindOf returns how a request has failed, given its context and what the server's handler returned. Zero: it has
// not failed, or its failure says nothing about the server.
func KindOf(ctx context.Context, res mcp.Result, err error) Kind {
	verdict, kind, _ := judge(ctx, res, err)
	if verdict != failed {
		return 0
	}
	return kind
}

// verdict says what the end of a request means for a breaker.
type verdict int

const (
	ignored verdict = iota // it says nothing about the server
	worked
	failed
)

// judge returns the verdict on a request, and the kind and the cause if it failed.
func judge(ctx context.Context, res mcp.Result, err error) (verdict, Kind, string) {
	var limit *mcp.LimitError
	var status *mcp.HTTPError
	var begun mcp.BegunError
	var rpc *mcp.Error
	switch end := outcome.Of(ctx, res, err); end.Cause {
	case outcome.Result, outcome.Question, outcome.Task, outcome.Tool:
		return worked, 0, ""
	case outcome.Deadline:
		if errors.As(err, &limit) || ctx.Err() == nil { // else the caller's own deadline
			return failed, TimedOut, causeOf(err)
		}
	case outcome.Lost:
		switch {
		case outcome.Unsent(err), outcome.ShutDown(ctx):
		case errors.Is(err, mcp.ErrSessionLost), errors.As(err, &status) && status.Status < http.StatusInternalServerError:
			return worked, 0, "" // an answer
		case errors.As(err, &status):
			return failed, BadStatus, causeOf(err)
		default:
			return failed, Lost, causeOf(err)
		}
	case outcome.Server:
		switch {
		case outcome.Unusable(err):
			return failed, Unusable, causeOf(err)
		case errors.As(err, &begun) && begun.Begun(): // a question was not answered, for instance
		case end.Code == jsonrpc.CodeInternal && errors.As(err, &rpc):
			if _, limited := retryafter.Data(rpc.Data); !limited {
				return failed, Internal, causeOf(err)
			}
		default:
			return worked, 0, ""
		}
	}
	return ignored, 0, ""
}

// causeOf words an error.
func causeOf(err error) string {
	var limit *mcp.LimitError
	if errors.As(err, &limit) {
		return fmt.Sprintf("no answer within %v", limit.Limit)
	}
	return text.Short(err.Error())
}
