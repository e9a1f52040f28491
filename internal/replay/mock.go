package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// Mock answers like the server of a recording. It is an [mcp.Handler]; as mcp.Server.Handler it
// serves clients of every revision on every transport.
//
// A request is answered by the exchange with the same method and params, or else by one about the
// same tool, prompt or resource. Several exchanges are used in recorded order, the last of them
// repeatedly. The questions and notifications before the recorded answer are repeated;
// notifications outside of requests go to subscribers, after as many answers as in the recording.
type Mock struct {
	rec      *Recording
	redactor *trace.Redactor
	info     *mcp.ServerInfo

	mu        sync.Mutex
	next      map[string]int         // number of answers to a kind of request; guarded by mu
	answered  int                    // guarded by mu
	free      []FreeNote             // not sent yet; guarded by mu
	listeners map[chan struct{}]bool // woken when there may be notifications to send; guarded by mu
}

var _ mcp.Handler = (*Mock)(nil)

// NewMock makes a mock.
func NewMock(rec *Recording) *Mock {
	m := &Mock{rec: rec, redactor: trace.NewRedactor(nil), next: map[string]int{}, free: slices.Clone(rec.Free), listeners: map[chan struct{}]bool{}}
	m.info = &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "mock", Version: "0"}, Revisions: mcp.Revisions()}
	if s := rec.Server; s != nil {
		// Capabilities that cannot be read are not offered.
		if s.Info != nil {
			_ = jsonx.Unmarshal(s.Info, &m.info.Implementation)
		}
		if s.Capabilities != nil {
			_ = jsonx.Unmarshal(s.Capabilities, &m.info.Capabilities)
		}
		m.info.Instructions, _ = jsonx.Unquote(s.Instructions)
	} else {
		m.info.Capabilities = m.capabilities()
	}
	return m
}

// capabilities returns those that the recorded requests need.
func (m *Mock) capabilities() mcp.Capabilities {
	caps := mcp.Capabilities{}
	for _, x := range m.rec.Exchanges {
		kind, _, _ := strings.Cut(x.Method, "/")
		if kind == "completion" {
			kind = "completions"
		}
		if x.Done && x.Error == nil && slices.Contains([]string{"tools", "prompts", "resources", "completions"}, kind) {
			caps[kind] = json.RawMessage(`{}`)
		}
	}
	return caps
}

// Server returns a server with the mock as its handler and the name that was recorded.
func (m *Mock) Server() *mcp.Server {
	return &mcp.Server{
		Name: m.info.Name, Title: m.info.Title, Version: m.info.Version, Instructions: m.info.Instructions,
		Handler: m,
	}
}

// memoPick is the key of the exchange that answers a call, for its later rounds.
const memoPick = "mock:exchange"

// Handle answers one request.
func (m *Mock) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case revision.MethodDiscover:
		return m.info, nil
	case revision.MethodListen:
		return m.listen(ctx, req)
	}
	call := engine.From(ctx)
	x, err := m.exchange(call, req)
	if err != nil {
		return nil, err
	}
	if err := m.steps(ctx, call, x); err != nil {
		return nil, err
	}
	m.count()
	switch {
	case x.Error != nil:
		e := &mcp.Error{Code: x.Error.Code, Message: x.Error.Message, Data: x.Error.Data}
		if uri, _ := jsonx.Lookup(e.Data, "uri"); x.Method == revision.MethodRead && e.Code == jsonrpc.CodeInvalidParams && uri != nil {
			e.Code = mcp.CodeResourceNotFound // the code in the inner form
		}
		return nil, e
	case x.Task:
		task := x.Result
		if inner, ok := jsonx.Lookup(task, "task"); ok {
			task = inner
		}
		return &mcp.CreateTaskResult{Task: task}, nil
	}
	return mcp.RawResult(x.Result), nil
}

// exchange finds the exchange that answers a call, the same one in each of its rounds.
func (m *Mock) exchange(call *engine.Call, req *mcp.Request) (*Exchange, error) {
	if call != nil && call.Round() > 0 {
		if raw, ok := call.Recall(memoPick); ok {
			if i, err := strconv.Atoi(string(raw)); err == nil && i >= 0 && i < len(m.rec.Exchanges) {
				return m.rec.Exchanges[i], nil
			}
		}
	}
	i, err := m.pick(req.Method, req.Params)
	if err != nil {
		return nil, err
	}
	if call != nil {
		call.Remember(memoPick, json.RawMessage(strconv.Itoa(i)))
	}
	return m.rec.Exchanges[i], nil
}

// pick finds an exchange for a method and its params.
func (m *Mock) pick(method string, params json.RawMessage) (int, error) {
	plain := plainParams(m.redactor.Frame(trace.Frame{Msg: orObject(params)}).Msg)
	wanted, name := string(jsonx.Canonical(plain)), nameOf(plain)
	_, page := jsonx.Lookup(plain, "cursor")
	var exact, named []int
	for i, x := range m.rec.Exchanges {
		if x.Method != method || !x.Done {
			continue
		}
		switch _, paged := jsonx.Lookup(x.Params, "cursor"); {
		case string(jsonx.Canonical(x.Params)) == wanted:
			exact = append(exact, i)
		case x.Name() == name && page == paged && !page:
			named = append(named, i)
		}
	}
	found, kind := exact, method+" "+wanted
	if len(found) == 0 {
		found, kind = named, method+" named "+name
	}
	if len(found) == 0 {
		return 0, m.missing(method, name, plain)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.next[kind]
	m.next[kind]++
	return found[min(n, len(found)-1)], nil
}

// missing returns the error for a request that was not recorded, and lists what was.
func (m *Mock) missing(method, name string, params json.RawMessage) error {
	var names, methods []string
	for _, x := range m.rec.Exchanges {
		if !x.Done {
			continue
		}
		if !slices.Contains(methods, x.Method) {
			methods = append(methods, x.Method)
		}
		if x.Method == method && !slices.Contains(names, x.Name()) {
			names = append(names, x.Name())
		}
	}
	switch cursor, paged := jsonx.Lookup(params, "cursor"); {
	case len(names) == 0:
		return mcp.Errorf(jsonrpc.CodeMethodNotFound, "the recording has no %s; it has %s", method, list(methods))
	case paged:
		return mcp.Errorf(jsonrpc.CodeInvalidParams, "the recording has no page %s of %s", clip(string(cursor)), method)
	case method == revision.MethodRead:
		return &mcp.Error{Code: mcp.CodeResourceNotFound, Message: fmt.Sprintf("the recording has no %s of %q; it has %s", method, clip(name), list(names)),
			Data: append(jsonx.AppendString([]byte(`{"uri":`), name), '}')}
	}
	return mcp.Errorf(jsonrpc.CodeInvalidParams, "the recording has no %s of %q; it has %s", method, clip(name), list(names))
}

// list returns at most 20 names.
func list(names []string) string {
	const most = 20
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	if len(names) == 0 {
		return "none"
	}
	return clip(strings.Join(names, ", ")) + more
}

// steps repeats the recorded server's steps before its answer. A call that is suspended by a
// question runs again from the start; notifications before questions that are answered by then
// are not repeated.
func (m *Mock) steps(ctx context.Context, call *engine.Call, x *Exchange) error {
	if call == nil {
		return nil
	}
	told := call.Round()
	group := 0
	for at, s := range x.Steps {
		if s.Note != nil {
			if group >= told {
				m.tell(call, s.Note)
			}
			continue
		}
		if len(s.Questions) == 1 && s.Questions[0].Method == revision.MethodRoots {
			if _, ok := jsonx.Lookup(call.Peer.Capabilities, "roots"); !ok {
				continue // asked at any time, so the answer hardly depends on it
			}
		}
		qs := make([]engine.Question, len(s.Questions))
		for i, q := range s.Questions {
			qs[i] = engine.Question{Method: q.Method, Params: q.Params, Key: fmt.Sprintf("%d.%d", at, i)}
		}
		group++
		_, err := call.Ask(ctx, qs...)
		var refused *mcp.Error
		if err != nil && !errors.As(err, &refused) { // a refusal is an answer
			return lacking(err)
		}
	}
	return nil
}

// lacking returns the error for a caller that cannot be asked a question.
func lacking(err error) error {
	var lacks *engine.LacksError
	if !errors.As(err, &lacks) {
		return err
	}
	e := &mcp.Error{Code: mcp.CodeMissingCapability, Message: "the recorded server asked here, and " + lacks.Error()}
	if lacks.Required != nil {
		e.Data = append(append([]byte(`{"requiredCapabilities":`), lacks.Required...), '}')
	}
	return e
}

func (m *Mock) tell(call *engine.Call, n *Note) {
	switch n.Method {
	case revision.NoteProgress:
		var w struct {
			Done    float64 `json:"progress"`
			Total   float64 `json:"total"`
			Message string  `json:"message"`
		}
		if jsonx.Unmarshal(n.Params, &w) == nil {
			call.Progress(w.Done, w.Total, w.Message)
		}
		return
	case revision.NoteMessage:
		level, _ := jsonx.Lookup(n.Params, "level")
		if name, err := jsonx.Unquote(level); err != nil || !call.LogEnabled(name) {
			return
		}
	}
	_ = call.Emit(n.Method, n.Params) // if the caller disconnects, the context ends the call
}

// count counts an answer and wakes the listeners.
func (m *Mock) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered++
	m.wake()
}

// wake is called with mu held.
func (m *Mock) wake() {
	for l := range m.listeners {
		select {
		case l <- struct{}{}:
		default:
		}
	}
}

// listen sends the free notifications that the caller wants, when they are due.
func (m *Mock) listen(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	call := engine.From(ctx)
	if call == nil {
		return nil, mcp.ErrNoCall
	}
	wanted := orObject(req.Param("notifications"))
	wanted = append(json.RawMessage(nil), wanted...)
	if err := call.Emit(revision.NoteAcknowledged, append(append([]byte(`{"notifications":`), wanted...), '}')); err != nil {
		return nil, err
	}
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	m.mu.Lock()
	m.listeners[wake] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, wake)
	}()
	for {
		select {
		case <-ctx.Done():
			return mcp.RawResult(`{}`), nil
		case <-wake:
		}
		for _, n := range m.due(wanted) {
			if err := call.Emit(n.Method, n.Params); err != nil {
				return nil, err
			}
		}
	}
}

// due removes and returns the notifications that are due and that a listener wants. Each goes to
// one listener.
func (m *Mock) due(wanted json.RawMessage) []FreeNote {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out, rest []FreeNote
	for _, n := range m.free {
		if n.After <= m.answered && wants(wanted, n.Note) {
			out = append(out, n)
		} else {
			rest = append(rest, n)
		}
	}
	m.free = rest
	return out
}

// wants reports whether the filter of a subscription accepts a notification.
func wants(filter json.RawMessage, n Note) bool {
	member := map[string]string{
		revision.NoteToolsChanged: "toolsListChanged", revision.NotePromptsChanged: "promptsListChanged",
		revision.NoteResourcesChanged: "resourcesListChanged",
	}[n.Method]
	if member != "" {
		v, _ := jsonx.Lookup(filter, member)
		return string(v) == "true"
	}
	if n.Method != revision.NoteResourceUpdated {
		return false
	}
	uri, _ := jsonx.Lookup(n.Params, "uri")
	uris, _ := jsonx.Lookup(filter, "resourceSubscriptions")
	if jsonx.KindOf(uris) == '[' {
		for u := range jsonx.Elements(uris) {
			if string(jsonx.Canonical(u)) == string(jsonx.Canonical(uri)) {
				return true
			}
		}
	}
	return false
}
