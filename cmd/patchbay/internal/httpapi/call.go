package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/idempotency"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds.
const (
	maxBody  = 4 << 20  // bytes of arguments, as of a message to /mcp
	maxPages = 1000     // of a list
	maxTools = 64 << 20 // bytes of a list
	maxWords = 64 << 10 // bytes of the detail of a problem
)

// caller is a request that is to be passed on to a server.
type caller struct {
	api  *API
	r    *http.Request
	srv  *mcp.Server
	path string // of the server, below the path of the endpoint
}

// answer is what a server has answered.
type answer struct {
	status int // of HTTP
	header http.Header
	result json.RawMessage // nil: there is an error
	code   int             // of the error
	words  string          // of the error
	lacks  string          // names of the capabilities without which the caller cannot be asked; empty: none
	wait   string          // seconds, of the error; empty: it does not say
	end    outcome.End     // zero if ran is not set
	ran    bool            // it comes from a handler
	away   bool            // the request has not reached its server, which is failing or starting
}

func (a *answer) ok() bool { return a.result != nil }

// elsewhere reports whether a view does not exist or is not for the caller, who may use others.
func (a *answer) elsewhere() bool { return a.code == jsonrpc.CodeInvalidRequest }

// recorder takes a response. It cannot be flushed, so the response is a single message.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// door is the handler of a server in front of the one that a request is for. It notes how the request ended, which the
// response does not say.
type door struct{ *mcp.Server }

type answerKey struct{}

// Handle implements [mcp.Handler].
func (d door) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := d.Server.Handle(ctx, req)
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		var away interface{ Unreached() bool }
		a.ran, a.end = true, outcome.Of(ctx, res, err)
		a.away = errors.As(err, &away) && away.Unreached()
	}
	return res, err
}

// call passes on a request of MCP for the caller, who has no capabilities. It returns nil if the caller has
// disconnected.
func (c *caller) call(method, name string, params []byte) *answer {
	a := &answer{header: http.Header{}}
	ctx := context.WithValue(c.r.Context(), answerKey{}, a)
	meta := []byte(`{"` + engine.MetaVersion + `":"` + revision.Newest.Name + `","` + engine.MetaCapabilities + `":{},"` + engine.MetaClientInfo + `":{"name":"patchbay-api","version":`)
	meta = append(jsonx.AppendString(meta, c.api.Version), "}}"...)
	if key := c.r.Header["Idempotency-Key"]; len(key) > 0 && name != "" {
		meta = jsonx.With(nil, meta, idempotency.Meta, jsonx.AppendString(nil, key[0]))
	}
	if hops := hop.FromHeader(c.r.Header); hops != nil {
		meta = jsonx.With(nil, meta, hop.Meta, hops)
	}
	message := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`), jsonx.With(nil, params, "_meta", meta)...)
	message = append(message, '}')
	r := c.r.Clone(ctx)
	r.Method, r.Body, r.ContentLength, r.TransferEncoding = http.MethodPost, io.NopCloser(bytes.NewReader(message)), int64(len(message)), nil
	h := r.Header
	h.Del("Last-Event-Id")
	for name := range h {
		if strings.HasPrefix(name, "Mcp-") { // those that the message needs come from it
			delete(h, name)
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", web.AcceptBoth)
	h.Set("Mcp-Protocol-Version", revision.Newest.Name)
	h.Set("Mcp-Method", method)
	if name != "" {
		h.Set("Mcp-Name", streamable.EncodeValue(name))
	}
	if list, ok := c.api.params.Load(toolKey{c.srv, name}); ok {
		args, _ := jsonx.Lookup(params, "arguments")
		streamable.SetParams(h, list.([]streamable.ParamHeader), args)
	}
	w := &recorder{header: a.header}
	c.api.door(c.srv).ServeHTTP(w, r)
	if c.r.Context().Err() != nil {
		return nil
	}
	a.read(w)
	return a
}

// door returns the server in front of a server. It has no sessions, and nothing to shut down.
func (a *API) door(srv *mcp.Server) *mcp.Server {
	d, ok := a.doors.Load(srv)
	if !ok {
		limits := srv.Limits
		limits.Message = 2 * maxBody // the arguments are bounded already
		d, _ = a.doors.LoadOrStore(srv, &mcp.Server{
			Name: srv.Name, Version: srv.Version, Handler: door{srv}, HTTP: srv.HTTP, Limits: limits, Logger: srv.Logger,
			Revisions: []mcp.Revision{mcp.Revision(revision.Newest.Name)}, OnFrame: srv.OnFrame, Watched: srv.Watched,
		})
	}
	return d.(*mcp.Server)
}

// read reads a response.
func (a *answer) read(w *recorder) {
	body := w.body.Bytes()
	if a.status = w.status; a.status == 0 {
		a.status = http.StatusOK
	}
	if result, ok := jsonx.Lookup(body, "result"); ok {
		a.result = result
		return
	}
	var e struct {
		Error struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := jsonx.Unmarshal(body, &e); err != nil {
		e.Error.Code, e.Error.Message = jsonrpc.CodeInternal, string(body)
	}
	a.code, a.words = e.Error.Code, text.Clip(e.Error.Message, maxWords)
	lacks, _ := jsonx.Lookup(e.Error.Data, "requiredCapabilities")
	var names []string
	for name := range jsonx.Members(lacks) {
		names = append(names, text.Short(string(name)))
	}
	a.lacks = strings.Join(names, ", ")
	if after, ok := jsonx.Lookup(e.Error.Data, "retryAfter"); ok {
		if n, err := strconv.ParseUint(string(after), 10, 31); err == nil {
			a.wait = strconv.FormatUint(n, 10)
		}
	}
}

// refuse answers with an error. The function lists reports whether the caller's list has the tool of a call; it is nil
// for other requests.
func (a *answer) refuse(w http.ResponseWriter, lists func() bool) {
	status, words := a.problem(lists)
	if words == "" {
		words = a.words
	}
	for _, name := range []string{"Www-Authenticate", "Retry-After"} {
		if v := a.header[name]; v != nil {
			w.Header()[name] = v
		}
	}
	if a.wait != "" && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", a.wait)
	}
	fail(w, status, "%s", words)
}

// problem returns the status for an error, and the words if they are not those of the error.
func (a *answer) problem(lists func() bool) (status int, words string) {
	switch cause := a.end.Cause; {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable:
		return a.status, ""
	case a.code == mcp.CodeMissingCapability:
		return http.StatusUnprocessableEntity, "the tool asks its caller (" + a.lacks + "), and a caller of this API cannot answer; call it by MCP"
	case lists != nil && (a.code == jsonrpc.CodeInvalidParams || a.code == jsonrpc.CodeMethodNotFound || cause == outcome.Denial):
		switch {
		case !lists():
			return http.StatusNotFound, "the server has no such tool"
		case cause == outcome.Denial:
			return http.StatusForbidden, ""
		case a.code == jsonrpc.CodeMethodNotFound:
			return http.StatusBadGateway, ""
		}
		return http.StatusBadRequest, ""
	case cause == outcome.Denial:
		return http.StatusForbidden, ""
	case cause == outcome.Deadline:
		return http.StatusGatewayTimeout, ""
	case cause == outcome.Unlogged, cause == outcome.Waited, a.away, a.wait != "":
		return http.StatusServiceUnavailable, ""
	case !a.ran && a.status >= http.StatusBadRequest:
		return a.status, ""
	}
	return http.StatusBadGateway, ""
}

// tools returns the tools that the caller may see, or the answer that has none.
func (c *caller) tools() (list []mcp.Tool, failed *answer) {
	params, size := []byte("{}"), 0
	for range maxPages {
		page := c.call("tools/list", "", params)
		switch {
		case page == nil:
			return nil, &answer{status: http.StatusServiceUnavailable}
		case page.code == jsonrpc.CodeMethodNotFound && !page.ok():
			return list, nil // it has no tools
		case !page.ok():
			return nil, page
		}
		items, _ := jsonx.Lookup(page.result, "tools")
		for item := range jsonx.Elements(items) {
			var t mcp.Tool
			if jsonx.Unmarshal(item, &t) == nil {
				list = append(list, t)
			}
		}
		cursor, more := jsonx.Lookup(page.result, "nextCursor")
		if size += len(page.result); !more || string(cursor) == "null" || size > maxTools {
			break
		}
		params = jsonx.With(nil, []byte("{}"), "cursor", cursor)
	}
	return list, nil
}

// tool calls a tool.
func (c *caller) tool(w http.ResponseWriter, pace *web.Pace, name string) {
	if !web.IsJSON(c.r.Header) {
		fail(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json, sent once, and the body not compressed")
		return
	}
	args, err := web.ReadBody(nil, w, c.r, pace, maxBody)
	switch {
	case errors.Is(err, web.ErrTooLarge):
		fail(w, http.StatusRequestEntityTooLarge, "the arguments have more than %d bytes", maxBody)
		return
	case errors.Is(err, web.ErrSlow):
		fail(w, http.StatusRequestTimeout, "%s", web.TooSlow)
		return
	case err != nil:
		fail(w, http.StatusBadRequest, "the body broke off")
		return
	}
	if args = bytes.TrimSpace(args); len(args) == 0 {
		args = []byte("{}")
	}
	if err := jsonx.Valid(args, 0); err != nil || jsonx.KindOf(args) != '{' {
		fail(w, http.StatusBadRequest, "the body must be the arguments of the tool, as an object in JSON%s", because(err))
		return
	}
	params := append(jsonx.AppendString([]byte(`{"name":`), name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	a := c.call("tools/call", name, params)
	if a != nil && a.code == mcp.CodeHeaderMismatch && c.learn(name) { // it was not called
		a = c.call("tools/call", name, params)
	}
	switch {
	case a == nil:
	case !a.ok():
		a.refuse(w, func() bool { return c.lists(name) })
	default:
		result(w, a.result, c.r.Header)
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// toolKey identifies a tool of a server.
type toolKey struct {
	srv  *mcp.Server
	name string
}

// maxParams bounds the tools whose headers are known.
const maxParams = 1000

// learn finds out which arguments of a tool travel in headers too (x-mcp-header), and reports whether any do. Such a tool
// refuses calls without these headers.
func (c *caller) learn(name string) bool {
	tools, _ := c.tools()
	for i := range tools {
		if tools[i].Name != name {
			continue
		}
		list, err := streamable.ParamHeaders(tools[i].InputSchema)
		if err != nil || len(list) == 0 || c.api.learned.Add(1) > maxParams {
			return false
		}
		c.api.params.Store(toolKey{c.srv, name}, list)
		return true
	}
	return false
}

// lists reports whether the list of the caller has a tool.
func (c *caller) lists(name string) bool {
	tools, _ := c.tools()
	for i := range tools {
		if tools[i].Name == name {
			return true
		}
	}
	return false
}
