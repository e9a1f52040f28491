package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const maxAnswer = 64 << 20 // bytes of an answer

// exchange is one request and its answer. Errors and oddities of servers are handled here for all
// APIs.
type exchange struct {
	*client
	ctx  context.Context
	emit func(model.Delta)
	req  *model.Request

	// events converts a whole answer to the events of a stream. It returns nil if it is not an answer
	// of the API. Some servers do not stream.
	events func(answer []byte) [][]byte

	path string // of the API
	done bool   // the server has marked the end of the stream

	sent  []byte // the request that is answered
	begun bool   // an event of the answer has come
	came  int    // bytes of its texts and calls
}

// used returns the usage of an answer. The provider may not have reported that of an answer that broke
// off, which it bills all the same: it is estimated then.
func (x *exchange) used(reported model.Usage, err error) model.Usage {
	if err == nil || !x.begun {
		return reported
	}
	if reported.Input == 0 {
		size := len(x.sent)
		for _, m := range x.req.Messages {
			for _, p := range m.Parts {
				size -= mediaSize(p)
			}
		}
		reported.Input = int64(text.Tokens(size))
	}
	reported.Output = max(reported.Output, int64(text.Tokens(x.came)))
	return reported
}

// mediaSize returns the bytes of the media of a part in a request, which say little about their tokens.
func mediaSize(p model.Part) (n int) {
	if p.Media != nil {
		n = base64.StdEncoding.EncodedLen(len(p.Media.Data))
	}
	if p.Result != nil {
		for _, p := range p.Result.Parts {
			n += mediaSize(p)
		}
	}
	return n
}

// answer is the body of an answer. Each read is a sign of life.
type answer struct {
	io.ReadCloser
	x    *exchange
	left int
}

func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, a.x.malformed("the answer is longer than %d bytes", maxAnswer)
	}
	n, err := a.ReadCloser.Read(p[:min(len(p), a.left)])
	a.left -= n
	if n > 0 && a.x.emit != nil {
		a.x.emit(model.Delta{})
	}
	return n, err
}

func (x *exchange) tell(d model.Delta) {
	x.came += len(d.Text) + len(d.Thinking)
	if d.Call != nil {
		x.came += len(d.Call.Name) + len(d.Call.Arguments)
	}
	if x.emit != nil && d != (model.Delta{}) {
		x.emit(d)
	}
}

// stream posts the request that build returns and calls each with every event of the answer, in
// order, until each returns true, the events end, or one of them is an error. In the end every error
// is an [*model.Error], or the cause of the context.
func (x *exchange) stream(build func(refusals) any, each func(event []byte) (last bool)) error {
	defer x.askWindow()()
	res, err := x.ask(build)
	if err != nil {
		return x.failed(err)
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		whole, err := io.ReadAll(res.Body)
		if err != nil {
			return x.failed(err)
		}
		if _, err := x.read("", whole, func([]byte) bool { return false }); err != nil {
			return err
		}
		events := x.events(whole)
		if events == nil {
			return x.notStream(kind, whole)
		}
		for _, event := range events {
			each(event)
		}
		x.done = true
		return nil
	case "text/html":
		start, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return x.notStream(kind, start)
	}
	return x.failed(x.scan(res.Body, each))
}

func (x *exchange) notStream(kind string, body []byte) error {
	return x.malformed("the answer is %s and not a stream: is the base URL right? It begins with %s", kind, said(string(body[:min(len(body), 200)])))
}

// ask sends a request, and sends it again without what the server refuses in it. If that helps, later
// requests are sent so at once.
func (x *exchange) ask(build func(refusals) any) (*http.Response, error) {
	if err := x.settled(); err != nil {
		return nil, err
	}
	x.mu.Lock()
	refused := maps.Clone(x.without)
	x.mu.Unlock()
	known, why := len(refused), map[string]string{}
	for {
		sent, err := encode(build(refused))
		if err != nil {
			return nil, x.error(model.Rejected, 0, "the request cannot be written as JSON: "+x.clean(err.Error()), err)
		}
		sent = x.more.addTo(x.extra(refused).addTo(refused.apply(sent)))
		res, err := x.post(sent)
		var e *model.Error
		if errors.As(err, &e) {
			if name := x.refusal(sent, refused, e); name != "" && !refused[name] && len(refused) < known+maxRefusals {
				refused[name], why[name] = true, e.Message
				continue
			}
		}
		if err == nil && len(refused) > known {
			x.mu.Lock()
			x.without = refused
			x.mu.Unlock()
		}
		if err == nil {
			x.sent = sent
			x.noteLeftOut(sent, refused, why)
		}
		return res, err
	}
}

// post sends a request. An answer with a status other than success is an error.
func (x *exchange) post(sent []byte) (*http.Response, error) {
	res, err := x.do(x.ctx, http.MethodPost, x.base.JoinPath(x.path), x.own, sent)
	if err != nil {
		return nil, err
	}
	res.Body = &answer{ReadCloser: res.Body, x: x, left: maxAnswer}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxRefuse))
		return nil, x.refused(res, said)
	}
	return res, nil
}

// do sends a body of JSON to an address of the server; nil: none. Headers of the caller go over own ones.
func (c *client) do(ctx context.Context, method string, to *url.URL, own http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "patchbay")
	maps.Copy(req.Header, own)
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var way *url.Error
		if errors.As(err, &way) { // the query of the base URL may hold a key
			at := *req.URL
			at.User, at.RawQuery = nil, ""
			err = &url.Error{Op: way.Op, URL: at.String(), Err: way.Err}
		}
		return nil, err
	}
	return res, nil
}

// scan reads the events of a stream (WHATWG HTML, section 9.2). Servers may omit the empty line
// after the last event.
func (x *exchange) scan(body io.Reader, each func([]byte) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswer+1)
	var name string
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			last, err := x.read(name, data, each)
			if last || err != nil {
				return err
			}
			name, data = "", data[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if isDone(data) || json.Valid(data) {
		_, err := x.read(name, data, each)
		return err
	}
	return nil
}

// read handles one event. An error in the middle of a stream is an event with its name, or with a
// member of that name.
func (x *exchange) read(name string, data []byte, each func([]byte) bool) (last bool, err error) {
	if len(data) == 0 {
		return false, nil
	}
	if isDone(data) {
		x.done = true
		return true, nil
	}
	var event struct {
		Error json.RawMessage `json:"error"`
	}
	switch err := decode(inList(data), &event); {
	case err != nil && x.begun: // the server speaks the API, so something happened on the way
		return true, x.error(model.Unavailable, 0, x.clean(fmt.Sprintf("an event in the middle of the answer is not JSON: %v", err)), err)
	case err != nil:
		return true, x.malformed("an event of the answer is not JSON: %v", err)
	}
	if name == "error" || len(event.Error) > 0 && string(event.Error) != "null" {
		return true, x.event(data)
	}
	x.begun = true
	return each(data), nil
}

// isDone reports whether an event says that a stream has ended, as OpenAI does.
func isDone(data []byte) bool { return bytes.HasPrefix(data, []byte("[DONE]")) }

// encode returns v as JSON, with the characters <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads JSON. A member whose type differs from that of its field leaves the field unchanged,
// because servers differ in the members besides the answer.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil
	}
	return err
}
