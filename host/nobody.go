package host

import (
	"context"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Nobody is a Person who refuses everything, like no Person at all, except that servers are offered sampling. A type that
// embeds it needs only the methods for what its person does answer.
type Nobody struct{}

// Approve returns ErrNobody.
func (Nobody) Approve(context.Context, *Approval) (Verdict, error) { return Verdict{}, ErrNobody }

// Elicit declines.
func (Nobody) Elicit(context.Context, *Elicitation) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "decline"}, nil
}

// ReviewRequest refuses with mcp.ErrDeclined.
func (Nobody) ReviewRequest(context.Context, *Sampling) (*mcp.SampleRequest, error) {
	return nil, mcp.ErrDeclined
}

// ReviewAnswer refuses with mcp.ErrDeclined.
func (Nobody) ReviewAnswer(context.Context, *Sampling, *mcp.SampleResult) (*mcp.SampleResult, error) {
	return nil, mcp.ErrDeclined
}

// Approver returns a Person who decides about calls, by a function as of Person.Approve, and refuses everything else.
// The function may be a rule instead of a person, see [Verdict].Rule.
func Approver(approve func(context.Context, *Approval) (Verdict, error)) Person {
	return approver{approve: approve}
}

type approver struct {
	Nobody
	approve func(context.Context, *Approval) (Verdict, error)
}

func (p approver) Approve(ctx context.Context, a *Approval) (Verdict, error) {
	return p.approve(ctx, a)
}
