//go:build linux

package setup

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// collector takes what is sent over OTLP, in JSON. It counts the spans afterwards, since it shares the
// processors with what is measured.
type collector struct {
	url  string
	http *httptest.Server

	mu   sync.Mutex
	sent []body // guarded by mu
}

// body is that of a request.
type body struct {
	bytes      []byte
	compressed bool
}

func newCollector() *collector {
	c := new(collector)
	c.http = httptest.NewServer(http.HandlerFunc(c.take))
	c.url = c.http.URL
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	all, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.sent = append(c.sent, body{all, strings.Contains(r.Header.Get("Content-Encoding"), "gzip")})
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, "{}")
}

// spans returns the number of spans.
func (c *collector) spans() (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.sent {
		all := b.bytes
		if b.compressed {
			unpacked, err := gzip.NewReader(bytes.NewReader(all))
			if err != nil {
				return 0, err
			}
			if all, err = io.ReadAll(unpacked); err != nil {
				return 0, err
			}
		}
		n += bytes.Count(all, []byte(`"spanId":`))
	}
	return n, nil
}

func (c *collector) close() { c.http.Close() }
