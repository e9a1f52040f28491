package policy

import "errors"

// Observe returns the policy p for [Middleware] and [Foreign], and calls decided with the decision
// about each request, not with those about entries of lists: whether it is allowed, and the rule that
// decided, empty for the default. The function is called before the request goes on, and by several
// goroutines at once; it must not block. The method Decided of metrics.Counters is one. Observe panics
// if decided is nil.
func Observe(p Policy, decided func(allow bool, rule string)) Policy {
	if decided == nil {
		panic(errors.New("policy: Observe: the function is nil; give one, such as the method Decided of metrics.Counters"))
	}
	return &observed{p, decided}
}

// observed is a policy with an observer. A gate takes it apart, so that p keeps its other methods.
type observed struct {
	Policy
	decided func(allow bool, rule string)
}
