// Package rules reads a policy from a file: rules whose conditions are expressions of CEL,
// the Common Expression Language.
//
//	# YAML, or JSON with the same members. The first rule that matches decides.
//	default: deny # if none does; without this line it is deny too
//	rules:
//	  - name: everybody may look
//	    when: kind == "tool" && annotations.readOnlyHint
//	    effect: allow
//	  - name: refunds need a scope
//	    when: server == "shop" && name == "refund" && !("shop:refund" in principal.scopes)
//	    effect: deny
//	    scopes: [shop:refund]
//	  - name: small refunds
//	    when: server == "shop" && name == "refund" && arguments.amount <= 100
//	    effect: allow
//
// A rule has a name, a condition and an effect. One that denies may have scopes: with all of
// these the access would be allowed, and they are sent to the caller. With show: true lists show
// such features. It may have a reason, which is sent to callers whose arguments are refused.
//
// # Variables
//
//   - principal: id, subject, issuer, client, name, scheme (texts; empty for nobody), scopes,
//     roles (lists of texts), claims (a map; those of a token).
//   - server: the name of the server.
//   - kind: "tool", "prompt", "resource", "method" for a method of an extension, or "page" for the page of the
//     program.
//   - name: of the tool or prompt, without the server's prefix; the URI; the method.
//   - template: the URI template that is listed or completed. Its name, a URI, is not known then.
//   - method: "tools/call", "prompts/get", "resources/read", "completion/complete",
//     "subscriptions/listen", "tasks/get", "tasks/update" or "tasks/cancel". An entry of a list
//     is decided for the method that uses it.
//   - arguments: a map. Whole numbers are int, others double. A missing member is an error, so
//     test has(arguments.path) first.
//   - annotations: readOnlyHint, destructiveHint, idempotentHint, openWorldHint (with the
//     defaults of the specification), title, audience, priority. They are what the server
//     claims.
//   - client: name, title, version. They are what the client claims.
//
// # Guarantees
//
//   - A file is accepted whole or not at all: [Parse] returns all its faults, with line and
//     column.
//   - A rule whose evaluation fails denies, and so does one that costs more than a million
//     units of CEL. No rule is skipped because it fails.
//   - Where arguments are not known, as in lists, a feature is refused only if no arguments
//     could be allowed.
//   - Arguments and annotations are read only if a rule uses them; for annotations a server may
//     have to be asked.
//   - A [Set] is immutable and safe for concurrent use.
package rules
