package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
	maxAnswer  = 64 << 10 // bytes that are read of an answer

	spansPath   = "/v1/traces"
	metricsPath = "/v1/metrics"
)

// send sends a request until the collector takes it, and returns how many spans or points it has
// refused. It returns an error when the time for retries is over, or a retry would be of no use.
func (e *Exporter) send(path string, body []byte) (rejected uint64, err error) {
	deadline, pause := time.Now().Add(e.o.Retry), firstPause
	for {
		answer, after, again, err := e.attempt(path, body)
		if err == nil {
			e.works(path)
			return e.partial(path, answer), nil
		}
		e.fails(path, err)
		wait := max(after, pause/2+rand.N(pause/2))
		if !again || time.Now().Add(wait).After(deadline) {
			return 0, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-e.closing:
			timer.Stop()
			return 0, err
		}
		pause = min(2*pause, maxPause)
	}
}

// newZip returns a writer for [Exporter.body]; nil: bodies are not compressed. It takes almost a megabyte with its
// first body.
func (e *Exporter) newZip() *gzip.Writer {
	if e.o.Uncompressed {
		return nil
	}
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // errors only for a level that does not exist
	return w
}

// body returns the body of a request that write writes. It may use the memory of room.
func body(room []byte, zip *gzip.Writer, write func(io.Writer) error) ([]byte, error) {
	out := bytes.NewBuffer(room[:0])
	if zip == nil {
		err := write(out)
		return out.Bytes(), err
	}
	zip.Reset(out)
	err := errors.Join(write(zip), zip.Close())
	return out.Bytes(), err
}

// upload is the body of a request. A transport may read it for longer than the request takes, until it closes it.
type upload struct {
	*bytes.Reader
	once sync.Once
	open *atomic.Int32
}

func (e *Exporter) upload(body []byte) *upload {
	e.uploads.Add(1)
	return &upload{Reader: bytes.NewReader(body), open: &e.uploads}
}

func (u *upload) Close() error {
	u.once.Do(func() { u.open.Add(-1) })
	return nil
}

// attempt sends a request once. If it fails, again says whether it may be repeated, and after how
// long at least.
func (e *Exporter) attempt(path string, body []byte) (answer []byte, after time.Duration, again bool, err error) {
	defer func() {
		if v := recover(); v != nil { // of the transport of Options.Client
			answer, again, err = nil, false, fmt.Errorf("panic: %v", v)
			e.once("a function panics", slog.String("in", "Options.Client"), slog.Any("err", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	ctx, cancel := context.WithTimeout(e.ctx, e.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+path, nil)
	if err != nil {
		return nil, 0, false, err
	}
	req.Body, req.ContentLength = e.upload(body), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return e.upload(body), nil }
	req.Header = e.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	if !e.o.Uncompressed {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := e.client.Do(req)
	if err != nil {
		return nil, 0, true, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return answer, 0, true, err
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
		after, _ = retryafter.Header(res.Header)
	}
	fault := fmt.Errorf("the collector answered %s", res.Status)
	if said := strings.TrimSpace(string(answer)); said != "" && res.Header.Get("Content-Type") != "application/x-protobuf" {
		fault = fmt.Errorf("%w: %s", fault, text.Short(said))
	}
	return nil, after, again, fault
}

// partial returns how many spans or points of a request the collector has refused.
func (e *Exporter) partial(path string, answer []byte) uint64 {
	var a struct {
		PartialSuccess struct {
			RejectedSpans      number
			RejectedDataPoints number
			ErrorMessage       string
		}
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0 // no content, or protobuf
	}
	p := a.PartialSuccess
	n := uint64(p.RejectedSpans + p.RejectedDataPoints)
	if n > 0 || p.ErrorMessage != "" {
		e.once("the collector refuses a part of the telemetry", slog.String("path", path), slog.String("err", text.Short(p.ErrorMessage)))
	}
	return n
}

// number is a 64-bit number of the JSON form of protobuf, which is a string or a number. Another
// value counts as zero.
type number uint64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(b []byte) error {
	var v uint64
	if json.Unmarshal(bytes.Trim(b, `"`), &v) == nil {
		*n = number(v)
	}
	return nil
}

// fails logs the first fault in a row.
func (e *Exporter) fails(path string, err error) {
	if errors.Is(err, context.Canceled) {
		return // by Shutdown
	}
	e.mu.Lock()
	first := e.faults[path] == nil
	e.faults[path] = err
	e.mu.Unlock()
	if first {
		e.o.Logger.Warn("telemetry is not delivered", "endpoint", e.base+path, "err", text.Short(err.Error()))
	}
}

// works logs the end of faults.
func (e *Exporter) works(path string) {
	e.mu.Lock()
	was := e.faults[path]
	delete(e.faults, path)
	e.mu.Unlock()
	if was != nil {
		e.o.Logger.Info("telemetry is delivered again", "endpoint", e.base+path, "dropped", e.dropped.Load(), "failed", e.failed.Load())
	}
}

// once logs a message with its first attribute once.
func (e *Exporter) once(msg string, attrs ...slog.Attr) {
	key := msg + " " + attrs[0].Value.String()
	e.mu.Lock()
	before := e.warned[key] || len(e.warned) >= 1000
	if !before {
		e.warned[key] = true
	}
	e.mu.Unlock()
	if !before {
		e.o.Logger.LogAttrs(context.Background(), slog.LevelWarn, msg, attrs...)
	}
}
