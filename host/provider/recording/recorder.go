package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Options are the same for a recording and for its use.
type Options struct {
	Transport http.RoundTripper   // asks the models; nil: http.DefaultTransport. A Player does not use it
	Redact    func(string) string // removes secrets from texts; nil: nothing is removed
}

func (o *Options) clean(s string) string {
	if o.Redact == nil {
		return s
	}
	return o.Redact(s)
}

// header is the first line of a recording.
type header struct {
	Recording string `json:"recording"` // "model"
	Version   int    `json:"version"`   // 1
}

// exchange is a line of a recording: a request with its answer.
type exchange struct {
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Request  json.RawMessage `json:"request,omitempty"` // compact, with sorted members
	Status   int             `json:"status"`
	Type     string          `json:"type,omitempty"` // of the content
	Response string          `json:"response"`
}

const maxResponse = 64 << 20 // bytes; longer answers are not recorded

// Recorder is an [http.RoundTripper] that records. Its methods may be called from any goroutine.
type Recorder struct {
	o    Options
	path string

	mu    sync.Mutex
	lines []json.RawMessage // guarded by mu; nil: its answer is not complete
	err   error             // the first fault; guarded by mu
}

// Create begins a recording, whose file Close writes.
func Create(path string, o Options) (*Recorder, error) {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if path == "" {
		return nil, errors.New("the recording has no name")
	}
	return &Recorder{o: o, path: path}, nil
}

// RoundTrip asks a model and records the answer when it was read.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	res, err := r.o.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout || res.StatusCode >= 500 {
		return res, nil
	}
	x := &exchange{Method: req.Method, Path: req.URL.Path, Request: requestOf(&r.o, body), Status: res.StatusCode, Type: res.Header.Get("Content-Type")}
	r.mu.Lock()
	at := len(r.lines)
	r.lines = append(r.lines, nil) // in the order of the requests
	r.mu.Unlock()
	res.Body = &reading{ReadCloser: res.Body, over: func(answer []byte) {
		x.Response = r.o.clean(string(answer))
		line, err := encode(x)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.lines[at] = line; err != nil && r.err == nil {
			r.err = err
		}
	}}
	return res, nil
}

// bodyOf reads the body of a request, which can be sent afterwards.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// Close writes the file of the recording.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return fmt.Errorf("record the model: %w", r.err)
	}
	first, err := encode(header{"model", 1})
	if err != nil {
		return err
	}
	out := append(first, '\n')
	for _, line := range r.lines {
		if line != nil {
			out = append(append(out, line...), '\n')
		}
	}
	if err := ownfile.ReplaceMode(r.path, out, 0o644); err != nil {
		return fmt.Errorf("record the model: %w", err)
	}
	return nil
}

// reading passes an answer on, and keeps it until it is over.
type reading struct {
	io.ReadCloser
	kept []byte
	long bool
	over func([]byte) // called once, with a whole answer
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.take(p[:n], err)
	return n, err
}

func (r *reading) take(p []byte, err error) {
	if r.long = r.long || len(r.kept)+len(p) > maxResponse; r.long {
		r.kept = nil
	} else {
		r.kept = append(r.kept, p...)
	}
	if err == io.EOF && r.over != nil && !r.long {
		r.over(r.kept)
	}
	if err != nil {
		r.over = nil
	}
}

const (
	restBytes = 64 << 10
	restTime  = time.Second
)

// Close reads what is left of an answer whose reader has seen enough, as it is at the mark [DONE].
func (r *reading) Close() error {
	if r.over != nil && !r.long {
		late := time.AfterFunc(restTime, func() { r.ReadCloser.Close() })
		var buf [4 << 10]byte
		for n := 0; n < restBytes && r.over != nil; {
			got, _ := r.Read(buf[:])
			n += got
		}
		late.Stop()
	}
	return r.ReadCloser.Close()
}

// requestOf returns a request as it is recorded and compared: redacted, with sorted members, and long texts as their hashes.
func requestOf(o *Options, body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(o.clean(string(body))))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		v = string(body)
	}
	raw, err := encode(shortened(v))
	if err != nil { // cannot happen: it was read from JSON
		panic(err)
	}
	return raw
}

// encode returns a value as JSON on one line, with < and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
