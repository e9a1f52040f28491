// Package engine serves single MCP requests from any transport. It works on raw JSON in the inner
// form (revision 2026-07-28 without its envelope) and does not know the Go types of features.
//
// A transport decodes a message, determines its era, and calls [Engine.Modern] for a
// self-contained request or [Engine.Legacy] for one of a [Session]. The engine runs the handler
// with a [Call] in its context, recovers from panics, converts the result to the caller's
// revision and returns a [Reply].
//
// A handler emits notifications and asks questions through its Call. For a legacy session a
// question is a request to the client. For a modern caller it is looked up among the answers that
// came with the request; if it is missing, the call ends in input_required and runs again when
// the client retries (ask.go, state.go).
package engine
