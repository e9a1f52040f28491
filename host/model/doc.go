// Package model is the interface between a host and language models: one interface, its messages,
// and its errors. Providers are in package provider.
//
// A conversation is a list of messages of two roles. The tool calls of the model are in its
// message, and the results are in the next message from the user, one for each call, in any order.
// All types can be stored as JSON and read again.
//
// [Retry] retries transient errors and times out silent providers. [Text] adds tool calls to
// models that only write text.
package model
