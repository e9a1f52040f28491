package main

import (
	"errors"

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
	verbs: []*verb{&policyCheckVerb, &policyReplayVerb},
}

// governed has the flags of all verbs with a chain: the settings of a deployment, and the rules that
// decide which callers may do what.
type governed struct {
	Gateway string `name:"gateway" placeholder:"FILE" help:"Read these settings: patchbay help gateway."`
	Policy  string `name:"policy" placeholder:"FILE" help:"Authorize by these rules: patchbay help policy."`
}

// policyFault explains an error in a policy file.
func policyFault(err error) error {
	f := &fault{Err: err}
	var bad rules.Problems
	if errors.As(err, &bad) {
		return f.Hint("patchbay help policy")
	}
	return f
}
