package verdict

import (
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
)

// Caller has the flags that describe a caller.
type Caller struct {
	Principal string   `placeholder:"ID" help:"Caller, such as apikey#ada; default: anonymous."`
	Scopes    []string `name:"scope" placeholder:"SCOPE" help:"Scope of the caller (repeatable)."`
	Roles     []string `name:"role" placeholder:"ROLE" help:"Role of the caller (repeatable)."`
	Claim     []string `name:"claim" sep:"none" placeholder:"K=V" help:"Claim of the caller (repeatable)."`
}

// Of returns the caller; nil: an anonymous one.
func (c *Caller) Of() (*auth.Principal, error) {
	if c.Principal == "" {
		if len(c.Scopes)+len(c.Roles)+len(c.Claim) > 0 {
			return nil, advice.Usagef("--scope, --role and --claim need --principal").Hint("--principal apikey#ada")
		}
		return nil, nil
	}
	p, err := Principal(c.Principal, c.Scopes, c.Roles, c.Claim)
	if err != nil {
		return nil, advice.Usagef("%w", err)
	}
	return p, nil
}
