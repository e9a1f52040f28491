package model

import (
	"context"
	"encoding/json"
)

// Model is one language model. Implementations must be safe for concurrent use.
type Model interface {
	// Info describes the model. It makes no request. After requests it may say more, as servers tell
	// the window of a model.
	Info() Info

	// Generate returns the model's answer. While the answer comes, emit, which may be nil, is
	// called with each piece of it, in order and on the goroutine of the caller. The response has
	// the whole answer. Generate does not change the request and keeps no reference to it.
	//
	// The error is an [*Error] from the provider or the connection, or the cause of ctx. An answer
	// that broke off is an error too; its beginning is returned with the error, without incomplete
	// calls.
	Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error)
}

// Info describes a model and its inputs.
type Info struct {
	Name   string // provider and name, such as "openai/gpt-5-mini"
	Window int    // tokens of a request and its answer together; 0: not known
	Tools  int    // maximum number of tools in a request; 0: not known
	Images bool   // accepts pictures (PNG, JPEG, GIF, WebP)
	Audio  bool   // accepts sounds (WAV, MP3)
	Files  bool   // accepts PDF files
	Price  Price

	// LeftOut are the parameters that requests asked for so far and that were not sent, because the model or its server
	// takes none: "effort=high", and the names of others, as [Parameters.List] has them.
	LeftOut []string
}

// Request is a request to a model.
type Request struct {
	System   string
	Messages []Message // the first and the last are of the user
	Tools    []Tool    // in a stable order, so that prompt caches work
	Choice   Choice

	Parameters
	Stop []string // texts at which the answer ends, if the model supports it

	// Schema is the JSON Schema for the text of the answer, as far as the provider can enforce
	// it; nil: any text.
	Schema json.RawMessage
}

// Tool describes a tool to a model.
type Tool struct {
	Name        string // of [A-Za-z0-9_-], at most 64 characters
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
}

// Choice controls whether the model calls a tool. The zero value leaves it to the model.
type Choice struct {
	Mode string // "auto" or empty, "none", "required", or "tool"
	Tool string // of mode "tool": the one to call
}

// Response is the answer from a model.
type Response struct {
	Message Message
	Stop    Stop
	Usage   Usage
	Retried Usage  // the part of Usage that attempts took that broke off, see [Retry]
	Model   string // the provider's name for it, which may be more specific than Info.Name
}

// Stop is the reason why an answer ended.
type Stop string

const (
	StopEnd     Stop = "end"     // it is complete
	StopCalls   Stop = "calls"   // the model called tools
	StopLength  Stop = "length"  // it was too long
	StopText    Stop = "text"    // it reached one of Request.Stop
	StopRefused Stop = "refused" // the model or a filter of the provider refused
)

// Delta is a piece of an answer. One of its fields is set, apart from Lost, or none in a sign of life,
// which only [Retry] sees.
type Delta struct {
	Text     string
	Thinking string
	Call     *CallDelta

	// Note is for the person, such as that the provider refuses a parameter. It is not part of the answer.
	Note string

	// Again announces a retry: the answer begins anew, and its earlier pieces are void.
	Again string // reason and time, for people
	Lost  Usage  // of the attempt that failed, with Again
}

// CallDelta is a piece of a call.
type CallDelta struct {
	Index     int    // number of the call in the answer, from 0
	ID, Name  string // with the first piece
	Arguments string // the next piece of their JSON
}
