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

// verdict says what the end of a request means for a breaker.
type verdict int

const (
	ignored verdict = iota // it says nothing about the server
	worked
	failed
)

// judge returns the verdict on a request, and the cause if it failed.
func judge(ctx context.Context, res mcp.Result, err error) (verdict, string) {
	var limit *mcp.LimitError
	var status *mcp.HTTPError
	var begun mcp.BegunError
	var rpc *mcp.Error
	switch end := outcome.Of(ctx, res, err); end.Cause {
	case outcome.Result, outcome.Question, outcome.Task, outcome.Tool:
		return worked, ""
	case outcome.Deadline:
		if errors.As(err, &limit) || ctx.Err() == nil { // else the caller's own deadline
			return failed, causeOf(err)
		}
	case outcome.Lost:
		switch {
		case outcome.Unsent(err), outcome.ShutDown(ctx):
		case errors.Is(err, mcp.ErrSessionLost), errors.As(err, &status) && status.Status < http.StatusInternalServerError:
			return worked, "" // an answer
		default:
			return failed, causeOf(err)
		}
	case outcome.Server:
		switch {
		case errors.As(err, &begun) && begun.Begun(): // a question was not answered, for instance
		case end.Code == jsonrpc.CodeInternal && errors.As(err, &rpc):
			if _, limited := retryafter.Data(rpc.Data); !limited {
				return failed, causeOf(err)
			}
		default:
			return worked, ""
		}
	}
	return ignored, ""
}

// causeOf words an error.
func causeOf(err error) string {
	var limit *mcp.LimitError
	if errors.As(err, &limit) {
		return fmt.Sprintf("no answer within %v", limit.Limit)
	}
	return text.Short(err.Error())
}
