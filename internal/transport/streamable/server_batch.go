package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// batchWorkers bounds the requests of one batch that run at the same time.
const batchWorkers = 8

// batch serves an array of messages, which only revision 2025-03-26 has
// (BASE-2503-001, SHTTP-2503-001).
func (s *Server) batch(p *response, r *http.Request, body []byte, version string) {
	refuse := func(text string) {
		web.Refuse(p.w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, text)
	}
	if header(r.Header, headerSession) == "" && !s.Stateless {
		refuse("a body is one message; only sessions of 2025-03-26 have batches")
		return
	}
	sess := s.session(p.w, r, jsonrpc.ID{}, version, nil)
	if sess == nil {
		return
	}
	defer s.done(sess, nil)
	if !sess.Peer.Revision.Batches {
		refuse("a body is one message; revision " + sess.Peer.Revision.Name + " has no batches")
		return
	}
	elements, err := jsonrpc.DecodeBatch(body, s.limits())
	if err != nil {
		var bad *jsonrpc.DecodeError
		if errors.As(err, &bad) {
			web.RefuseID(p.w, http.StatusBadRequest, jsonrpc.ID{}, bad.Err)
		}
		return
	}
	var calls, responses int
	for i := range elements {
		e := &elements[i]
		switch {
		case e.Err != nil && e.Err.Response, e.Err == nil && e.Message.Kind() == jsonrpc.KindResponse:
			responses++
		case e.Err == nil && e.Message.Method == revision.MethodInitialize:
			refuse("initialize must not be part of a batch")
			return
		default:
			calls++
		}
	}
	if calls > 0 && responses > 0 {
		refuse("a batch holds requests and notifications, or responses, not both")
		return
	}
	frames := s.runBatch(p, r, sess, elements)
	if len(frames) == 0 {
		p.mu.Lock()
		quiet := !p.events // otherwise a call sent messages and was then cancelled
		p.mu.Unlock()
		if quiet {
			p.w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	p.finish(http.StatusOK, true, frames...)
}

// runBatch runs the elements and returns the responses in their order.
func (s *Server) runBatch(p *response, r *http.Request, sess *session, elements []jsonrpc.Element) [][]byte {
	answers := make([][]byte, len(elements))
	slots := make(chan struct{}, batchWorkers)
	var wg sync.WaitGroup
	for i := range elements {
		e := &elements[i]
		if e.Err != nil {
			if !e.Err.Response {
				answers[i] = jsonrpc.AppendError(nil, e.Err.ID, e.Err.Err)
			}
			continue
		}
		switch e.Message.Kind() {
		case jsonrpc.KindNotification, jsonrpc.KindResponse:
			if !sess.take(&e.Message, s) {
				s.pass(r.Context(), sess, &e.Message)
			}
		default:
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				s.runElement(r, &e.Message, &element{p, sess}, &answers[i])
			})
		}
	}
	wg.Wait()
	frames := answers[:0]
	for _, a := range answers {
		if a != nil {
			frames = append(frames, a)
		}
	}
	return frames
}

// element is the engine.Exchange of a request in a batch.
type element struct {
	*response
	session *session
}

func (x *element) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return x.session.ask(ctx, x.send, method, params)
}

// runElement runs one request of a batch and sets its response, which is nil if none is wanted.
func (s *Server) runElement(r *http.Request, msg *jsonrpc.Message, x *element, answer *[]byte) {
	w := &work{id: msg.ID, msg: msg}
	w.begin(r.Context(), engine.ErrNever)
	w.ctx.Caused(s.Recorder.Conn(r.Context()), msg.ID)
	err := error(ErrShutdown)
	if s.start(&w.run) {
		defer s.stop(&w.run)
		var reply engine.Reply
		err = s.run(w, r, x.session, x, &reply, func(wanted, _ bool) {
			if wanted {
				*answer = reply.Append(nil)
			}
		})
	}
	if err != nil {
		*answer = jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
	}
}
