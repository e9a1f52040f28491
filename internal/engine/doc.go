// Package engine serves MCP requests one at a time, whatever wire they came from.
// It speaks raw JSON in the inner form (revision 2026-07-28 without its envelope)
// and knows nothing of Go types of features.
//
// A transport decodes a message, finds out which era it belongs to, and calls
// [Engine.Modern] for a self-contained request or [Engine.Legacy] for one of a
// [Session]. The engine runs the handler behind a panic wall with a [Call] in its
// context, converts the result for the caller's revision and hands back a [Reply].
//
// A handler emits notifications and asks questions through its Call. For a legacy
// session a question is a request on the wire. For a modern caller it is looked up
// among the answers that came with the request; if it is not there the call ends
// in input_required and is replayed when the client retries (ask.go, state.go).
package engine
