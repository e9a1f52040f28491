// Package policy says what a caller may do, feature by feature. A [Policy] decides on an
// [Access]; [Middleware] asks it about everything that reaches a handler, so that it is the
// same in front of an mcp.Server, of a gateway, and of each server behind one.
//
// [Require] is a policy that is data: scopes and roles by feature. [Func] is one that is a
// function. Package policy/rules reads one from a file of CEL expressions.
//
//	srv.Use(policy.Middleware("shop", &policy.Require{
//		Tools: map[string]policy.Requirement{"refund": {Scopes: []string{"shop:refund"}}},
//	}, nil))
//
// The caller is the principal that sessions and tasks belong to (mcp.Call.Principal), with the
// scopes and roles that an [auth.Guard] in front of the server knows of it. A principal that
// mcp.HTTPConfig.Principal names has its ID alone where there is no Guard.
//
// # What a caller sees
//
//   - Lists have what the policy would not refuse for sure: arguments are not known yet, so
//     a feature is there if some would be allowed.
//   - A refusal that scopes would lift is 403 with error="insufficient_scope" and their names
//     (401 if nobody is calling), from which clients log in for more. Such a feature is in no
//     list, unless the policy says so ([Decision.Show]).
//   - Other refusals of what a list would not show have the answer of something that does
//     not exist, and that answer does not depend on whether it does.
//   - Where only the arguments are refused, the error says so and names what decided.
//
// # Guarantees
//
//   - tools/call, prompts/get, resources/read, completion/complete and the four lists are
//     decided one by one. subscriptions/listen is refused if any of its resources is, and
//     what it tells later is decided again when it is told. Requests about a task are refused
//     when all calls of its tool would be. Which tool that is, is remembered for 10,000
//     tasks; for another it is any tool. Methods of extensions are decided by their names.
//   - A URI with dot segments, or with escapes or letters that could be others, is decided as
//     it is and as it could be written: both must be allowed.
//   - server/discover, ping and notifications pass. Changes of lists are told without saying
//     what has changed.
//   - What passes is for the caller alone: a result that others could keep (cacheScope
//     "public") becomes private, and a list is not kept at all, since other scopes may
//     show more.
//   - Annotations of features are those of servers that are trusted: the program's own, and
//     those that [Foreign] is told are. Of others a policy sees none.
//   - Refusals are logged without arguments.
//
// Specification: 2026-07-28, basic/authorization, Scope Challenge Handling; server/utilities/caching,
// Security Considerations.
package policy
