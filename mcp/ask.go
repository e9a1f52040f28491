package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	neturl "net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/schema"
)

// All functions of this file that ask follow these rules:
//
//   - If the caller did not declare what the question needs, the error is ErrNotSupported and
//     nothing is sent.
//   - Toward 2026-07-28 an unanswered question returns [ErrPending]. The handler must return that
//     error, wrapped or not. It may ask more questions first: all of them then travel in one round.
//     The handler runs again with the answers. A pending question takes precedence over anything
//     else the handler returns.
//   - A question is identified by its position among the questions of the call and by its
//     content. [QuestionKey] identifies it by a name instead. Questions asked from several
//     goroutines at once have no fixed position and need a QuestionKey.

// AskOption changes one question.
type AskOption func(*askOptions)

type askOptions struct{ key string }

// QuestionKey names a question, so that its answer is found even when the wording or the order of
// questions differs between two runs of the handler. Keys must be unique within a call.
func QuestionKey(key string) AskOption { return func(o *askOptions) { o.key = key } }

// ElicitRequest is a question to the user.
type ElicitRequest struct {
	Message string

	// Schema is the flat object schema of the form to fill in; nil for a URL.
	Schema json.RawMessage

	// URL is a page to visit (since 2025-11-25), or "" if the question is a form.
	URL string
}

// ElicitResult is the user's answer to an [ElicitRequest].
type ElicitResult struct {
	Action  string         // "accept", "decline" or "cancel"
	Content map[string]any // the form's values, if accepted
}

// Elicit asks the user to fill in a form and returns the values. T is a struct of strings, numbers,
// booleans and enums; package schema documents the tags. Values that the form does not ask for are
// ignored, and null counts as no value. Errors: [ErrDeclined], [ErrDismissed], [ErrNotSupported],
// [ErrNoCall], and a *schema.ValidationError if the client sent values that do not fit T.
//
// Specification: client/elicitation, since 2025-06-18.
func Elicit[T any](ctx context.Context, message string, opts ...AskOption) (T, error) {
	var out T
	typ, err := schema.For[T]()
	if err != nil {
		return out, fmt.Errorf("elicit: %w", err)
	}
	form, err := typ.Elicitation()
	if err != nil {
		return out, fmt.Errorf("elicit: %w", err)
	}
	raw, err := elicit(ctx, message, form, opts)
	if err != nil {
		return out, err
	}
	if err := typ.DecodeAnswer(raw, &out); err != nil {
		return out, fmt.Errorf("elicit: the answer does not fit: %w", err)
	}
	return out, nil
}

// ElicitForm is [Elicit] for a form known only at run time. Content holds the
// values as encoding/json decodes them into any.
func ElicitForm(ctx context.Context, message string, form json.RawMessage, opts ...AskOption) (*ElicitResult, error) {
	raw, err := elicit(ctx, message, form, opts)
	switch {
	case errors.Is(err, ErrDeclined):
		return &ElicitResult{Action: "decline"}, nil
	case errors.Is(err, ErrDismissed):
		return &ElicitResult{Action: "cancel"}, nil
	case err != nil:
		return nil, err
	}
	res := &ElicitResult{Action: "accept"}
	if err := jsonx.Unmarshal(raw, &res.Content); err != nil {
		return nil, fmt.Errorf("elicit: %w", err)
	}
	return res, nil
}

// Confirm asks the user a yes-or-no question. If the user does not answer, the error is
// [ErrDeclined] or [ErrDismissed].
func Confirm(ctx context.Context, message string, opts ...AskOption) (bool, error) {
	type form struct {
		Confirm bool `json:"confirm" title:"Yes?"`
	}
	v, err := Elicit[form](ctx, message, opts...)
	return v.Confirm, err
}

// ElicitURL asks the user to visit a page, for instance to log in at a third party. A nil error
// means that the user agreed to open the page, not that the visit is complete. The caller must
// speak 2025-11-25 or later, and the URL must be absolute. A caller that speaks 2025-11-25 is
// notified that the visit is complete when the handler returns without an error. To end the call
// instead of waiting, use [RequireURL].
//
// Specification: 2026-07-28, client/elicitation, URL mode.
func ElicitURL(ctx context.Context, message, url string, opts ...AskOption) error {
	if err := checkURL(url); err != nil {
		return err
	}
	raw, err := ask(ctx, revision.MethodElicit, bridge.URLParams(message, url), opts)
	if err != nil {
		return err
	}
	_, err = bridge.Accepted(raw)
	return err
}

func checkURL(url string) error {
	if u, err := neturl.Parse(url); err != nil || !u.IsAbs() || u.Host == "" && u.Opaque == "" {
		return fmt.Errorf("elicit: %q is not an absolute URL; use one such as https://example.com/login", text.Short(url))
	}
	return nil
}

func elicit(ctx context.Context, message string, form json.RawMessage, opts []AskOption) (json.RawMessage, error) {
	params := encode(struct {
		Mode    string          `json:"mode"`
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}{"form", message, form})
	raw, err := ask(ctx, revision.MethodElicit, params, opts)
	if err != nil {
		return nil, err
	}
	return bridge.Accepted(raw)
}

// RequireURL ends a call that cannot go on before the user has visited a page, for instance to log
// in at a third party. The handler returns the error that RequireURL returns. After the visit the
// client calls again, so the handler should first check whether the visit has been made.
//
//	if token, ok := tokens.Of(mcp.CallFrom(ctx).Principal); !ok {
//		return "", mcp.RequireURL(ctx, "Log in at Example", loginURL)
//	}
//
// A caller that speaks 2025-11-25 gets the error -32042. A caller that speaks 2026-07-28 gets the
// question of [ElicitURL] or, if the user has agreed but not finished, an error that says so.
// Callers of other revisions cannot be sent to a page and get its URL in the text of an error.
//
// Specification: 2025-11-25, client/elicitation, URL Elicitation Required Error.
func RequireURL(ctx context.Context, message, url string) error {
	call := engine.From(ctx)
	if call == nil {
		return ErrNoCall
	}
	if err := checkURL(url); err != nil {
		return err
	}
	q := engine.Question{Method: revision.MethodElicit, Params: bridge.URLParams(message, url)}
	rev := call.Peer.Revision
	if !rev.Sessions {
		if err := ElicitURL(ctx, message, url, QuestionKey("visit:"+bridge.Place(url))); err != nil { // the query may change
			return err
		}
		return fmt.Errorf("%s: finish at %s, then call again", message, url)
	}
	if call.Peer.CanAnswer(q) == nil {
		if params, err := rev.Question(q.Method, q.Params); err == nil {
			return &Error{Code: revision.CodeURLRequired, Message: message, Data: encode(map[string][]json.RawMessage{"elicitations": {params}})}
		}
	}
	return fmt.Errorf("%s: visit %s, then call again: %w", message, url, ErrNotSupported)
}

// Root is a folder or file that the client allows servers to work on.
type Root struct {
	URI  string `json:"uri"` // a file: URI
	Name string `json:"name,omitempty"`
	Meta Meta   `json:"_meta,omitempty"`
}

// check refuses what must not be given to a server (2026-07-28, client/roots).
func (r Root) check() error {
	u, err := neturl.Parse(r.URI)
	switch {
	case err != nil || u.Scheme != "file" || u.Path == "":
		return fmt.Errorf("root %q is not a file: URI", text.Short(r.URI))
	case slices.Contains(strings.FieldsFunc(u.Path, func(c rune) bool { return c == '/' || c == '\\' }), ".."):
		return fmt.Errorf("root %q leads out of itself; clean its path", text.Short(r.URI))
	}
	return nil
}

// Roots asks the client for its roots.
//
// Specification: 2026-07-28, client/roots (deprecated there, but served).
func Roots(ctx context.Context, opts ...AskOption) ([]Root, error) {
	raw, err := ask(ctx, revision.MethodRoots, nil, opts)
	if err != nil {
		return nil, err
	}
	var res struct {
		Roots []Root `json:"roots"`
	}
	if err := jsonx.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("roots: the client's answer: %w", err)
	}
	return res.Roots, nil
}

// Once runs fn at most once per call, even if the call takes several rounds of questions, and
// returns the same result in each round. T is kept as JSON in the sealed requestState, so it should
// be small. An error from fn is returned and not kept.
//
// A client that sends an old state again makes fn run again. An effect that must never happen
// twice, such as a payment, needs [StateConfig.Store] or an idempotency key.
func Once[T any](ctx context.Context, key string, fn func(context.Context) (T, error)) (T, error) {
	var out T
	call := engine.From(ctx)
	if call == nil {
		return out, ErrNoCall
	}
	key = "once:" + key
	if raw, ok := call.Recall(key); ok {
		if err := jsonx.Unmarshal(raw, &out); err != nil {
			return out, fmt.Errorf("once: kept value: %w", err)
		}
		return out, nil
	}
	out, err := fn(ctx)
	if err != nil {
		return out, err
	}
	raw, err := jsonx.Marshal(out)
	if err != nil {
		return out, fmt.Errorf("once: keep value: %w", err)
	}
	call.Remember(key, raw)
	return out, nil
}

// ask sends one question to the caller of ctx.
func ask(ctx context.Context, method string, params json.RawMessage, opts []AskOption) (json.RawMessage, error) {
	call := engine.From(ctx)
	if call == nil {
		return nil, ErrNoCall
	}
	var o askOptions
	for _, f := range opts {
		f(&o)
	}
	answers, err := call.Ask(ctx, engine.Question{Method: method, Params: params, Key: o.key})
	if err != nil {
		return nil, notSupported(err)
	}
	return answers[0], nil
}

// notSupported makes the error of a question that the caller does not support an [ErrNotSupported].
func notSupported(err error) error {
	var lacks *engine.LacksError
	if errors.As(err, &lacks) {
		return fmt.Errorf("%w: %w", ErrNotSupported, err)
	}
	return err
}
