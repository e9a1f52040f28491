package main

import (
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

var policyReplayVerb = verb{
	name: "replay", summary: "Show what other rules do with recorded calls.", usage: "TRACE --policy FILE",
	examples: []string{"patchbay policy replay t.jsonl --policy new.yaml --principal apikey#ada"},
	server:   namedServer,
	details: `A recording has no principals: all calls get that of the flags. -s SERVER names
the server of a recording that is not of a gateway. Exit code 6: a call that a
server got is refused, or one that no server got is allowed.`,
	command: func() command { return new(policyReplayCmd) },
}

type policyReplayCmd struct{ verdict.Other }

// Run prints the decisions.
func (c *policyReplayCmd) Run(a *app) error {
	r, err := c.Replay(a.ctx, a.stdin, a.Server, explain.Owners, a.talk.Note)
	if bad := (rules.Problems)(nil); errors.As(err, &bad) {
		return policyFault(err)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.printJSON(r)
	} else {
		a.printGrid(r.Grid())
		a.print(r.Summary())
	}
	if err == nil && r.Differ > 0 {
		err = &fault{Code: exitRefused, Err: fmt.Errorf("the rules of %s decide otherwise than the recording shows", c.Policy)}
	}
	return err
}
