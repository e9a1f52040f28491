// Package everything is a server that uses every feature of the protocol that the
// SDK has: results of all kinds, progress, logging, questions to the user, to a model
// and for roots, over one and more rounds, features that come and go, subscriptions,
// completion, mirrored headers, a tool with a view, skills. It is made to try clients
// with, and it is what the official conformance suite is run against; the names that
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
// The first tool of the list needs no arguments, so that a client has something to
// call before it knows anything.
package everything
