package replay

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// serverMethods are the requests that a server sends.
var serverMethods = []string{revision.MethodElicit, revision.MethodSample, revision.MethodRoots}

// joiner assembles exchanges from messages, one frame after the other.
type joiner struct {
	rec      *Recording
	open     map[key]*opened   // unanswered requests from the client
	asked    map[key]*Question // unanswered requests from the server
	waiting  []*Exchange       // answered with input_required
	states   map[*Exchange]json.RawMessage
	spoken   map[string]string // revision by connection
	answered int
}

type key struct {
	conn string
	id   jsonrpc.ID
}

// opened is an unanswered request from the client.
type opened struct {
	ex       *Exchange // nil for requests that are not exchanges: initialize, ping and others
	method   string
	token    string // progress token as raw JSON
	exchange int    // of HTTP
}

func newJoiner() *joiner {
	return &joiner{
		rec: &Recording{}, open: map[key]*opened{}, asked: map[key]*Question{}, states: map[*Exchange]json.RawMessage{},
		spoken: map[string]string{},
	}
}

// add adds the next frame; client is the direction of the client's messages.
func (j *joiner) add(f numbered, client trace.Dir) {
	if f.Transport != "" && !slices.Contains(j.rec.Transports, f.Transport) {
		j.rec.Transports = append(j.rec.Transports, f.Transport)
	}
	if !f.Message() || f.Cut > 0 {
		return
	}
	fromClient := f.Dir == client
	raw := bytes.Clone(f.Msg)
	if fromClient && bytes.Contains(raw, []byte(trace.Redacted)) {
		j.rec.Redacted++
	}
	if !jsonrpc.IsBatch(raw) {
		msg, err := jsonrpc.Decode(raw, jsonrpc.Limits{})
		if err != nil {
			j.rec.fault("frame %d is not a message: %v", f.n, err)
			return
		}
		j.message(f, fromClient, &msg)
		return
	}
	elements, err := jsonrpc.DecodeBatch(raw, jsonrpc.Limits{})
	if err != nil {
		j.rec.fault("frame %d is not a batch of messages: %v", f.n, err)
		return
	}
	for i := range elements {
		if e := &elements[i]; e.Err != nil {
			j.rec.fault("frame %d has an element that is not a message: %v", f.n, e.Err)
		} else {
			j.message(f, fromClient, &e.Message)
		}
	}
}

func (j *joiner) message(f numbered, fromClient bool, msg *jsonrpc.Message) {
	at := key{f.Conn, msg.ID}
	switch kind := msg.Kind(); {
	case kind == jsonrpc.KindRequest && fromClient:
		j.request(f, at, msg)
	case kind == jsonrpc.KindRequest:
		j.question(f, at, msg)
	case kind == jsonrpc.KindNotification && !fromClient:
		j.note(f, msg)
	case kind == jsonrpc.KindResponse && fromClient:
		if q := j.asked[at]; q != nil {
			delete(j.asked, at)
			q.Answer, q.Error = msg.Result, msg.Error
		}
	case kind == jsonrpc.KindResponse:
		if msg.ID.IsZero() {
			at = j.refused(f)
		}
		if o := j.open[at]; o != nil {
			delete(j.open, at)
			j.response(f, o, msg)
		}
	}
}

// refused finds the request that an error without an id belongs to: that of the same HTTP
// exchange.
func (j *joiner) refused(f numbered) key {
	if f.HTTP != nil && f.HTTP.Exchange != 0 {
		for at, o := range j.open {
			if at.conn == f.Conn && o.exchange == f.HTTP.Exchange {
				return at
			}
		}
	}
	return key{}
}

// revisionOf finds the revision of a message.
func (j *joiner) revisionOf(f numbered, msg *jsonrpc.Message) string {
	if raw, ok := msg.ParamIn("_meta", engine.MetaVersion); ok {
		if s, err := jsonx.Unquote(raw); err == nil {
			return s
		}
	}
	if s := j.spoken[f.Conn]; s != "" {
		return s
	}
	if f.HTTP != nil {
		for _, v := range f.HTTP.Headers["Mcp-Protocol-Version"] {
			return v
		}
	}
	return j.rec.Revision
}

func (j *joiner) request(f numbered, at key, msg *jsonrpc.Message) {
	o := &opened{method: msg.Method}
	if f.HTTP != nil {
		o.exchange = f.HTTP.Exchange
	}
	if raw, ok := msg.ParamIn("_meta", "progressToken"); ok {
		o.token = string(raw)
	}
	rev := j.revisionOf(f, msg)
	if revision.Find(revision.All, rev) != nil && msg.Method != revision.MethodInitialize {
		j.rec.Revision = rev
	}
	j.client(msg)
	switch msg.Method {
	case revision.MethodInitialize, revision.MethodDiscover, revision.MethodPing, revision.MethodListen,
		revision.MethodSubscribe, revision.MethodUnsubscribe:
		j.open[at] = o
		return
	case revision.MethodSetLevel:
		if raw, ok := msg.Param("level"); ok && j.rec.LogLevel == "" {
			j.rec.LogLevel, _ = jsonx.Unquote(raw)
		}
		j.open[at] = o
		return
	}
	params := plainParams(msg.Params)
	if o.ex = j.continued(msg, params); o.ex == nil {
		o.ex = &Exchange{Line: f.n, Conn: f.Conn, Revision: rev, Method: msg.Method, Params: params, Progress: o.token != ""}
		j.rec.Exchanges = append(j.rec.Exchanges, o.ex)
	}
	for _, other := range j.open {
		if other.ex != nil {
			other.ex.Overlaps, o.ex.Overlaps = true, true
		}
	}
	j.open[at] = o
}

// client records the client's description in a request.
func (j *joiner) client(msg *jsonrpc.Message) {
	get := func(name, meta string) json.RawMessage {
		if msg.Method == revision.MethodInitialize {
			v, _ := msg.Param(name)
			return v
		}
		v, _ := msg.ParamIn("_meta", meta)
		return v
	}
	if v := get("clientInfo", engine.MetaClientInfo); v != nil && j.rec.Client == nil {
		j.rec.Client = v
	}
	if v := get("capabilities", engine.MetaCapabilities); v != nil && (j.rec.Capabilities == nil || len(v) > len(j.rec.Capabilities)) {
		j.rec.Capabilities = v
	}
	if raw, ok := msg.ParamIn("_meta", engine.MetaLogLevel); ok && j.rec.LogLevel == "" {
		j.rec.LogLevel, _ = jsonx.Unquote(raw)
	}
}

// plainParams returns params without the members for one hop or one round.
func plainParams(params json.RawMessage) json.RawMessage {
	if jsonx.KindOf(params) != '{' {
		return json.RawMessage(`{}`)
	}
	params = jsonx.Without(nil, params, "inputResponses", "requestState")
	return withoutMeta(params, engine.MetaVersion, engine.MetaClientInfo, engine.MetaCapabilities, engine.MetaLogLevel, "progressToken")
}

// withoutMeta removes members of _meta, and _meta itself if it is then empty.
func withoutMeta(obj json.RawMessage, names ...string) json.RawMessage {
	meta, ok := jsonx.Lookup(obj, "_meta")
	if !ok || jsonx.KindOf(meta) != '{' {
		return obj
	}
	rest := jsonx.Without(nil, meta, names...)
	if string(jsonx.Compact(nil, rest)) == "{}" {
		return jsonx.Without(nil, obj, "_meta")
	}
	return jsonx.With(nil, obj, "_meta", rest)
}

// continued finds the exchange that a request continues after a round of questions, and takes the
// answers. It returns nil for a new request.
func (j *joiner) continued(msg *jsonrpc.Message, params json.RawMessage) *Exchange {
	responses, answers := msg.Param("inputResponses")
	state, stateful := msg.Param("requestState")
	if !answers && !stateful {
		return nil
	}
	for i := len(j.waiting) - 1; i >= 0; i-- {
		x := j.waiting[i]
		if x.Method != msg.Method || !bytes.Equal(j.states[x], state) || !bytes.Equal(jsonx.Canonical(x.Params), jsonx.Canonical(params)) {
			continue
		}
		j.waiting = slices.Delete(j.waiting, i, i+1)
		for _, q := range x.Questions() {
			if q.Answer != nil || q.Error != nil {
				continue
			}
			if v, ok := jsonx.Lookup(responses, q.key); ok && jsonx.KindOf(responses) == '{' {
				q.Answer = v
			}
		}
		return x
	}
	return nil
}

// owner finds the request that a message from the server belongs to: by its progress token, by the
// HTTP exchange that carries it, or as the only one.
func (j *joiner) owner(f numbered, token json.RawMessage) *opened {
	var only *opened
	many := false
	for at, o := range j.open {
		if at.conn != f.Conn || o.ex == nil {
			continue
		}
		if token != nil && o.token == string(token) {
			return o
		}
		if f.HTTP != nil && o.exchange != 0 && o.exchange == f.HTTP.Exchange {
			return o
		}
		many = many || only != nil
		only = o
	}
	if token != nil || many {
		return nil
	}
	return only
}

func (j *joiner) question(f numbered, at key, msg *jsonrpc.Message) {
	if msg.Method == revision.MethodPing {
		return
	}
	q := &Question{Method: msg.Method, Params: orObject(msg.Params)}
	if t := revision.Find(revision.All, j.revisionOf(f, msg)); t != nil {
		q.Params = t.InnerQuestion(msg.Method, q.Params)
	}
	q.Params = withoutMeta(q.Params, "progressToken")
	j.asked[at] = q
	if o := j.owner(f, nil); o != nil {
		o.ex.Steps = append(o.ex.Steps, Step{Questions: []*Question{q}})
		return
	}
	j.rec.answers = append(j.rec.answers, q)
}

func (j *joiner) note(f numbered, msg *jsonrpc.Message) {
	n := Note{msg.Method, orObject(msg.Params)}
	var o *opened
	switch msg.Method {
	case revision.NoteCancelled, revision.NoteAcknowledged:
		return
	case revision.NoteProgress:
		token, _ := msg.Param("progressToken")
		if o = j.owner(f, token); o == nil {
			return
		}
		n.Params = jsonx.Without(nil, n.Params, "progressToken")
	case revision.NoteToolsChanged, revision.NotePromptsChanged, revision.NoteResourcesChanged, revision.NoteResourceUpdated:
	default:
		if _, ok := msg.ParamIn("_meta", engine.MetaSubscription); !ok {
			o = j.owner(f, nil)
		}
	}
	n.Params = withoutMeta(n.Params, engine.MetaSubscription)
	if o == nil {
		j.rec.Free = append(j.rec.Free, FreeNote{n, j.answered})
		return
	}
	o.ex.Steps = append(o.ex.Steps, Step{Note: &n})
}

func (j *joiner) response(f numbered, o *opened, msg *jsonrpc.Message) {
	switch o.method {
	case revision.MethodInitialize:
		if raw, ok := jsonx.Lookup(msg.Result, "protocolVersion"); ok {
			if s, err := jsonx.Unquote(raw); err == nil && revision.Find(revision.All, s) != nil {
				j.spoken[f.Conn], j.rec.Revision = s, s
			}
		}
		j.server(o.method, msg.Result)
		return
	case revision.MethodDiscover:
		j.server(o.method, msg.Result)
		return
	}
	x := o.ex
	if x == nil {
		return
	}
	x.Error, x.Result = msg.Error, msg.Result
	if msg.Error == nil {
		kind := "complete"
		if raw, ok := jsonx.Lookup(msg.Result, "resultType"); ok {
			kind, _ = jsonx.Unquote(raw)
		}
		if kind == "input_required" {
			j.inputRequired(x, msg.Result)
			return
		}
		_, handle := jsonx.Lookup(msg.Result, "task")
		x.Task = kind == "task" || handle && x.Method == revision.MethodCall
		x.Result = plainResult(msg.Result)
	}
	x.Done = true
	j.answered++
}

// plainResult returns a result without its envelope.
func plainResult(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) != '{' {
		return raw
	}
	return withoutMeta(jsonx.Without(nil, raw, "resultType"), engine.MetaServerInfo)
}

// inputRequired records the questions of a round.
func (j *joiner) inputRequired(x *Exchange, raw json.RawMessage) {
	x.Result = nil
	requests, _ := jsonx.Lookup(raw, "inputRequests")
	var round []*Question
	if jsonx.KindOf(requests) == '{' {
		for name, request := range jsonx.Members(requests) {
			q := &Question{key: string(name), Params: json.RawMessage(`{}`)}
			if m, ok := jsonx.Lookup(request, "method"); ok {
				q.Method, _ = jsonx.Unquote(m)
			}
			if p, ok := jsonx.Lookup(request, "params"); ok {
				q.Params = orObject(p)
			}
			round = append(round, q)
		}
	}
	if len(round) > 0 {
		x.Steps = append(x.Steps, Step{Questions: round})
	}
	state, _ := jsonx.Lookup(raw, "requestState")
	j.states[x] = state
	j.waiting = append(j.waiting, x)
}

// server records the server's description.
func (j *joiner) server(method string, result json.RawMessage) {
	if result == nil {
		return
	}
	get := func(name string) json.RawMessage { v, _ := jsonx.Lookup(result, name); return v }
	s := &Server{Method: method, Info: get("serverInfo"), Capabilities: get("capabilities"), Instructions: get("instructions")}
	if s.Info == nil {
		s.Info, _ = jsonx.LookupPath(result, "_meta", engine.MetaServerInfo)
	}
	j.rec.Server = s
}

// end reports unanswered requests.
func (j *joiner) end() {
	for _, x := range j.rec.Exchanges {
		if !x.Done {
			x.Result = nil
		}
	}
}

func orObject(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) != '{' {
		return json.RawMessage(`{}`)
	}
	return raw
}
