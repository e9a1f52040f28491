package model

import (
	"context"
	"encoding/json"
)

// Model is one language model. Implementations may be used by several goroutines at once.
type Model interface {
	// Info tells what the model is and takes. It asks nobody.
	Info() Info

	// Generate has the model answer. While the answer comes, emit is told each piece of it, on
	// the goroutine of the caller and in order; nil: nobody wants to know. The response has all
	// of it once more. A request is not changed, nor kept after the return.
	//
	// Errors are an [*Error] if the provider has said something, or the cause of ctx. An answer
	// that broke off is an error too; what there was of it is returned beside it, with no calls
	// of which the end is missing.
	Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error)
}

// Info tells what a model is and takes.
type Info struct {
	Name   string // provider and name, such as "openai/gpt-5-mini"
	Window int    // tokens of a request and its answer together; 0: not known
	Tools  int    // the most tools of a request; 0: no bound is known
	Images bool   // takes pictures (PNG, JPEG, GIF, WebP)
	Audio  bool   // takes sounds (WAV, MP3)
	Files  bool   // takes PDF files
	Price  Price
}

// Request is what a model is asked.
type Request struct {
	System   string
	Messages []Message // the first and the last are of the user
	Tools    []Tool    // in an order that does not change, so that caches of prompts are of use
	Choice   Choice

	MaxTokens   int      // of the answer; 0: as many as the model has
	Temperature *float64 // nil: the default of the model; models that take none are not told
	Stop        []string // texts at which the answer ends, as far as the model takes them

	// Schema is the JSON Schema that the text of the answer fits, as far as the provider can see
	// to that; nil: any text.
	Schema json.RawMessage
}

// Tool is a tool as models know it.
type Tool struct {
	Name        string // of [A-Za-z0-9_-], at most 64 characters
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
}

// Choice says whether the model is to call a tool. The zero value leaves it to the model.
type Choice struct {
	Mode string // "auto" or empty, "none", "required", or "tool"
	Tool string // of mode "tool": the one to call
}

// Response is what a model has answered.
type Response struct {
	Message Message
	Stop    Stop
	Usage   Usage
	Model   string // as the provider names it, which may be more exact than Info.Name
}

// Stop is why an answer ended.
type Stop string

const (
	StopEnd     Stop = "end"     // it is complete
	StopCalls   Stop = "calls"   // tools are to be called
	StopLength  Stop = "length"  // it was too long
	StopText    Stop = "text"    // one of Request.Stop came
	StopRefused Stop = "refused" // the model or a filter of the provider refused
)

// Delta is a piece of an answer. One of its fields is set; none of them in a sign of life, which
// is for [Retry] alone.
type Delta struct {
	Text     string
	Thinking string
	Call     *CallDelta

	// Again says that the answer begins anew, as it broke off or could not begin: what came
	// before is void.
	Again string // why and when, for people
}

// CallDelta is a piece of a call.
type CallDelta struct {
	Index     int    // which of the calls of the answer, from 0
	ID, Name  string // with the first piece
	Arguments string // the next piece of their JSON
}
