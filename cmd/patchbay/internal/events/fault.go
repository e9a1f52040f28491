package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Fault returns the error of a turn that ended without one, but not with a whole answer to the task;
// nil: it did. The function again returns the command with other flags.
func (t *Teller) Fault(r *host.Reply, again func(flags ...string) string) error {
	f := &advice.Error{Code: advice.ExitBound}
	switch {
	case r.Early == host.TooManySteps:
		return host.ErrSteps
	case r.Early == host.TooExpensive:
		return host.ErrBudget
	case r.Early != "":
		f.Err = errors.New("stopped: the model repeated the same call; the answer uses the results until then")
	case r.Stop == model.StopLength:
		f.Err = errors.New("the answer was cut off, so it is not whole")
		f.Hint(`ask for less, or raise "maxTokens" of the model in mcp.json`)
	case r.Stop == model.StopRefused:
		f.Code, f.Err = advice.ExitModel, errors.New("the model, or a filter of its provider, refused to answer")
	case strings.TrimSpace(r.Text) == "":
		f.Code, f.Err = advice.ExitModel, errors.New("the model gave no answer")
	case len(t.Refused) > 0:
		f.Code, f.Err = advice.ExitDenied, fmt.Errorf("not allowed, so not called: %s", strings.Join(t.Refused, ", "))
		var flags []string
		for _, tool := range slices.Concat(t.Allowed, t.Refused) {
			flags = append(flags, "--allow", tool)
		}
		f.Hint(again(flags...))
	case len(t.lost) > 0:
		f.Code, f.Err = advice.ExitDenied, fmt.Errorf("not called again, as it may have happened before: %s", strings.Join(t.lost, ", "))
		f.Hint("see whether it has happened; at a terminal, run asks a person whether to call it again")
	default:
		return nil
	}
	return f
}
