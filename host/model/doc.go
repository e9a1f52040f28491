// Package model is what a host needs of a language model: one interface, the messages that
// go through it, and the errors that come back. It knows no provider; those are in package
// provider beside it.
//
// A conversation is a list of messages of two roles. What the model wants called stands in its
// message as calls, and the results stand in the next message of the user, one for each call, in
// any order. Everything here can be kept as JSON and read again.
//
// [Retry] asks a model again that is busy, and ends the silence of a dead one. [Text] lets models
// call tools that know only text.
package model
