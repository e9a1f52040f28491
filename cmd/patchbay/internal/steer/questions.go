package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// Question is a question of a server that waits for the answer of a client before 2026-07-28.
type Question struct {
	ID        string          `json:"id"`
	Server    string          `json:"server,omitempty"` // empty: unknown
	About     string          `json:"about,omitempty"`  // the tool, prompt or resource of the call, as the client names it
	Principal string          `json:"principal,omitempty"`
	Client    string          `json:"client,omitempty"` // its name
	Method    string          `json:"method"`           // "elicitation/create" or "sampling/createMessage"
	Params    json.RawMessage `json:"params"`
	Since     time.Time       `json:"since"`

	n      int64
	answer chan json.RawMessage // takes one
}

// Questions are the questions that are open. The zero value has none. It may be used by several goroutines.
type Questions struct {
	// Owner returns the server of a name that callers use; empty: unknown.
	Owner func(name string) (server, own string)

	// Answered is called after a person has answered.
	Answered func(by, action string, q *Question)

	mu   sync.Mutex
	last int64               // guarded by mu
	open map[int64]*Question // guarded by mu
}

// NewQuestions returns questions whose answers get lines in an audit log by steered.
func NewQuestions(owner func(name string) (server, own string), steered func(by, event, server string, detail map[string]any)) *Questions {
	return &Questions{Owner: owner, Answered: func(by, action string, q *Question) { steered(by, "answer", q.Server, q.Facts(action)) }}
}

// maxParams bounds the params of a question that others can answer.
const maxParams = 256 << 10

// errNotAlone leaves questions to the client.
var errNotAlone = errors.New("only the client answers this")

// Watch offers the questions of a session to people beside its client. It is for [mcp.Server.OnSession].
// Watch of nil does nothing.
func (q *Questions) Watch(session context.Context) {
	if q != nil {
		forward.Beside(session, q.wait)
	}
}

// wait offers a question until it is answered, or ctx ends. Several questions at once, and those for roots, are left to
// the client: nobody else knows its folders.
func (q *Questions) wait(ctx context.Context, of forward.Asked, asked []forward.Asked) ([]json.RawMessage, error) {
	if len(asked) != 1 || asked[0].Method == "roots/list" || len(asked[0].Params) > maxParams {
		return nil, errNotAlone
	}
	one := &Question{Method: asked[0].Method, Params: slices.Clone(asked[0].Params), Since: time.Now(), answer: make(chan json.RawMessage, 1)}
	if call := mcp.CallFrom(ctx); call != nil {
		one.Principal, one.Client = call.Principal, text.Short(call.Client.Name)
	}
	q.about(of.Params, one)
	q.mu.Lock()
	if len(q.open) >= maxShown {
		q.mu.Unlock()
		return nil, errNotAlone
	}
	q.last++
	one.n, one.ID = q.last, strconv.FormatInt(q.last, 10)
	if q.open == nil {
		q.open = map[int64]*Question{}
	}
	q.open[one.n] = one
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.open, one.n)
	}()
	select {
	case a := <-one.answer:
		return []json.RawMessage{a}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// about finds the call that a question belongs to.
func (q *Questions) about(params json.RawMessage, one *Question) {
	for _, member := range []string{"name", "uri"} {
		if quoted, ok := jsonx.Lookup(params, member); ok {
			name, _ := jsonx.Unquote(quoted)
			one.About = text.Short(name)
			if q.Owner != nil {
				one.Server, _ = q.Owner(name)
			}
			return
		}
	}
}

// List returns the open questions, the oldest first: those of a principal, or with all those of everybody.
func (q *Questions) List(principal string, all bool) []Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := []Question{}
	for _, one := range q.open {
		if all || one.Principal == principal {
			out = append(out, *one)
		}
	}
	slices.SortFunc(out, func(a, b Question) int { return int(a.n - b.n) })
	return out
}

// All is [Questions.List] with the number of questions.
func (q *Questions) All(principal string, all bool) (list any, n int) {
	out := q.List(principal, all)
	return out, len(out)
}

// Facts returns what the audit log has of an answer.
func (one *Question) Facts(action string) map[string]any {
	return map[string]any{"action": action, "question": one.Method, "about": one.About, "for": one.Principal}
}

// ErrGone is the error for a question that has an answer already, or whose call is over.
var ErrGone = errors.New("the question is not open any more: it was answered, or its call is over")

// Answer answers a question for a person, who answers those of everybody with all. The answer is the result of the
// request.
func (q *Questions) Answer(id, by string, all bool, answer json.RawMessage) error {
	n, err := strconv.ParseInt(id, 10, 64)
	q.mu.Lock()
	one := q.open[n]
	q.mu.Unlock()
	if err != nil || one == nil || !all && one.Principal != by {
		return ErrGone // also of one that the person may not see
	}
	action, err := checked(one, by, answer)
	if err != nil {
		return err
	}
	q.mu.Lock()
	if q.open[n] != one {
		q.mu.Unlock()
		return ErrGone
	}
	delete(q.open, n)
	one.answer <- answer // it takes one, and has none
	q.mu.Unlock()
	if q.Answered != nil {
		q.Answered(by, action, one)
	}
	return nil
}

// checked returns what an answer does, or why it is none.
func checked(one *Question, by string, answer json.RawMessage) (action string, err error) {
	if jsonx.KindOf(answer) != '{' {
		return "", errors.New("the answer is not an object")
	}
	if one.Method != "elicitation/create" {
		if _, ok := jsonx.Lookup(answer, "content"); !ok {
			return "", errors.New("the answer to a sampling request has no content")
		}
		return "write", nil
	}
	quoted, _ := jsonx.Lookup(answer, "action")
	if action, _ = jsonx.Unquote(quoted); !slices.Contains([]string{"accept", "decline", "cancel"}, action) {
		return "", fmt.Errorf("the action of the answer is not accept, decline or cancel")
	}
	mode, _ := jsonx.Lookup(one.Params, "mode")
	if string(mode) == `"url"` && action == "accept" && one.Principal != by {
		return "", fmt.Errorf("only %s can visit the page of this question: it is about their account", strings.TrimSpace("the caller "+one.Principal))
	}
	return action, nil
}
