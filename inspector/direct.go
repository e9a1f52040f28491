package inspector

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// direct sends HTTP requests to a handler of this process, as if they came over the connection of another request: a call
// takes the way of those of the page's browser.
type direct struct {
	to   http.Handler
	like *http.Request
}

func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	r := req.Clone(ctx)
	r.RequestURI, r.Host, r.RemoteAddr, r.TLS = req.URL.RequestURI(), d.like.Host, d.like.RemoteAddr, d.like.TLS
	if r.Body == nil {
		r.Body = http.NoBody
	}
	out, in := io.Pipe()
	w := &piped{header: http.Header{}, in: in, begun: make(chan struct{})}
	go func() { // ends with the answer, or soon after the caller has closed it
		defer cancel()
		defer func() {
			if v := recover(); v != nil { // net/http too ends one request, and not the program
				w.WriteHeader(http.StatusInternalServerError)
				in.CloseWithError(fmt.Errorf("the handler panicked: %v", v))
			}
		}()
		d.to.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		in.Close()
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
	}
	select {
	case <-w.begun: // the handler ends ctx too, after its answer
	default:
		out.CloseWithError(context.Cause(ctx))
		cancel()
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &answerBody{out, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// answerBody ends the request when its answer is closed.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (c *answerBody) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}

// piped writes an answer into a pipe.
type piped struct {
	header http.Header
	in     *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when the two below are set
	status int
	sent   http.Header
}

func (w *piped) Header() http.Header { return w.header }

func (w *piped) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *piped) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.in.Write(b)
}

// The methods for http.ResponseController. A pipe has nothing to flush and no deadlines: the context bounds it.
func (w *piped) Flush()                           { w.WriteHeader(http.StatusOK) }
func (w *piped) SetReadDeadline(time.Time) error  { return nil }
func (w *piped) SetWriteDeadline(time.Time) error { return nil }
func (w *piped) EnableFullDuplex() error          { return nil }
