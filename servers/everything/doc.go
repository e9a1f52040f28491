// Package everything is a server that uses every feature of the protocol that the SDK
// has: results of all kinds, progress, logging, questions to the user, to a model and
// for roots, over one or more rounds, features that are added and removed,
// subscriptions, completion, mirrored headers, a tool with a view, skills. It is for
// trying clients, and the official conformance suite runs against it; names that
// begin with test_ are the suite's.
//
// From the command line:
//
//	patchbay call everything/echo message=hi
//	patchbay serve everything --http 127.0.0.1:7420
//
// From Go:
//
//	http.Handle("/mcp", everything.New())
//
// The first tool of the list does not need arguments, so that a client can call it at
// once.
package everything
