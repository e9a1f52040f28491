// Package policy authorizes callers, feature by feature. A [Policy] decides on an [Access];
// [Middleware] asks it about every request to a handler, so that it works in the same way in
// front of an mcp.Server, of a gateway, and of each server behind one.
//
// [Require] is a policy as data: scopes and roles by feature. [Func] is a policy as a function.
// Package policy/rules reads a policy from a file of CEL expressions.
//
//	srv.Use(policy.Middleware("shop", &policy.Require{
//		Tools: map[string]policy.Requirement{"refund": {Scopes: []string{"shop:refund"}}},
//	}, nil))
//
// The caller is the principal that sessions and tasks belong to (mcp.Call.Principal), with the
// scopes and roles from an [auth.Guard] in front of the server. Without a Guard, a principal from
// mcp.HTTPConfig.Principal has only its ID.
//
// # What a caller sees
//
//   - A list has the features that the policy does not refuse for certain: arguments are not
//     known yet, so a feature is listed if some arguments would be allowed.
//   - A refusal that more scopes would lift is 403 with error="insufficient_scope" and the names
//     of the scopes (401 if the caller is not authenticated), so that clients can log in for
//     more. Such a feature is not listed unless the policy wants it ([Decision.Show]).
//   - Any other refusal of an unlisted feature is the answer for a feature that does not exist,
//     and does not depend on whether it exists.
//   - If only the arguments are refused, the error says so and names the rule.
//
// # Guarantees
//
//   - tools/call, prompts/get, resources/read, completion/complete and the four lists are decided
//     one by one. subscriptions/listen is refused if any of its resources is, and each of its
//     notifications is decided when it is sent. Requests about a task are refused when all calls
//     of its tool would be. The tools of 10,000 tasks are remembered; any other task may be of
//     any tool. Methods of extensions are decided by name.
//   - A URI that is not in its simplest form (dot segments, needless escapes, letter case) is
//     decided in both forms: both must be allowed.
//   - server/discover, ping and notifications pass. List change notifications do not name what
//     has changed.
//   - Results are for the caller alone: cacheScope "public" becomes private, and lists are not
//     cached at all, because other scopes may show more.
//   - A policy sees the annotations of trusted servers only: the program's own, and those that
//     [Foreign] declares trusted.
//   - Refusals are logged without arguments.
//
// Specification: 2026-07-28, basic/authorization, Scope Challenge Handling; server/utilities/caching,
// Security Considerations.
package policy
