package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/internal/follow"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

var policyVerb = verb{
	name: "policy", summary: "Check the rules of a policy, and explain their decisions.",
	examples: []string{"patchbay policy check policy.yaml", "patchbay up --policy policy.yaml --auth apikeys:keys.jsonl"},
	minor:    true,
	details: `A policy is a file of rules, in YAML or JSON; the first match decides:
  default: deny
  rules:
    - name: everyone may look    # only hints of trusted servers count
      when: kind == "tool" && annotations.readOnlyHint
      effect: allow
    - name: refunds need a scope
      when: name == "refund" && !("shop:refund" in principal.scopes)
      effect: deny
      scopes: [shop:refund]
when is a CEL expression over principal, server, kind, name, template, method,
arguments, annotations and client. docs/policy.md describes it.`,
	verbs: []*verb{&policyCheckVerb},
}

// governed has the flag that decides which callers may do what.
type governed struct {
	Policy string `name:"policy" placeholder:"FILE" help:"Authorize by these rules: patchbay help policy."`
}

// ruleFile is a policy that follows its file.
type ruleFile struct {
	path    string
	log     *slog.Logger
	set     atomic.Pointer[rules.Set]
	content []byte // the text of set; only used by the goroutine that rereads the file
}

// rules reads the file of --policy; nil without the flag.
func (g *governed) rules(a *app) (*ruleFile, error) {
	if g.Policy == "" {
		return nil, nil
	}
	f := &ruleFile{path: g.Policy, log: a.logger()}
	var bad rules.Problems
	if _, err := f.read(); err != nil && !errors.As(err, &bad) {
		return nil, (&fault{err: fmt.Errorf("--policy: %w", err)}).hint("patchbay help policy")
	} else if err != nil {
		return nil, policyFault(err)
	}
	return f, nil
}

// policyFault explains an error in a policy file.
func policyFault(err error) error {
	f := &fault{err: err}
	var bad rules.Problems
	if errors.As(err, &bad) {
		return f.hint("patchbay help policy")
	}
	return f
}

// read rereads the file, and reports whether it has changed.
func (f *ruleFile) read() (changed bool, err error) {
	content, err := ownfile.ReadNow(f.path, arguments.MaxInput)
	if err == nil && len(content) > arguments.MaxInput {
		err = fmt.Errorf("%s is larger than %d MiB", f.path, arguments.MaxInput>>20)
	}
	if err != nil || f.set.Load() != nil && string(content) == string(f.content) {
		return false, err
	}
	set, err := rules.Parse(f.path, content)
	if err != nil {
		return false, err
	}
	f.content = content
	f.set.Store(set)
	return true, nil
}

// Decide decides by the current rules.
func (f *ruleFile) Decide(ctx context.Context, a *policy.Access) policy.Decision {
	return f.set.Load().Decide(ctx, a)
}

// Version identifies the current rules.
func (f *ruleFile) Version() any { return f.set.Load() }

// middleware puts the policy in front of a built-in server.
func (f *ruleFile) middleware(server string) mcp.Middleware {
	return policy.Middleware(server, f, f.log)
}

// around returns middleware that puts the policy in front of the servers behind a gateway or of a
// host; nil without a policy. The function trusted reports whether the policy believes the
// annotations of a server's features.
func (f *ruleFile) around(trusted func(server string) bool) func(server string) mcp.Middleware {
	if f == nil {
		return nil
	}
	return func(server string) mcp.Middleware {
		return policy.Foreign(server, trusted(server), f, f.log)
	}
}

// follow follows the file until ctx ends, and calls changed when the rules have changed. A faulty
// or missing file changes nothing.
func (f *ruleFile) follow(ctx context.Context, a *app, changed func()) {
	if f == nil {
		return
	}
	a.follow(ctx, f.path, func() follow.Look {
		other, err := f.read()
		var bad rules.Problems
		switch {
		case errors.As(err, &bad):
			text := "patchbay: " + f.path + " has faults; the policy is unchanged"
			for _, p := range bad {
				text += "\n  " + visible(p.String())
			}
			return follow.Look{Fault: text, Wrong: true}
		case errors.Is(err, fs.ErrNotExist):
			return follow.Look{Fault: "patchbay: " + f.path + " is gone; the policy is unchanged", Wrong: true}
		case err != nil:
			return follow.Look{Fault: "patchbay: " + visible(err.Error()) + "; the policy is unchanged", Wrong: true}
		}
		if other {
			a.talk.Note("%s: now %s", f.path, counted(f.set.Load().Len(), "rule"))
			changed()
		}
		return follow.Look{}
	})
}
