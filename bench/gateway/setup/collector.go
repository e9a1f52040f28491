//go:build linux

package setup

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
)

// collector takes what is sent over OTLP, in JSON, and counts the spans.
type collector struct {
	url   string
	http  *httptest.Server
	count atomic.Int64
}

func newCollector() *collector {
	c := new(collector)
	c.http = httptest.NewServer(http.HandlerFunc(c.take))
	c.url = c.http.URL
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if strings.Contains(r.Header.Get("Content-Encoding"), "gzip") {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	all, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.count.Add(int64(bytes.Count(all, []byte(`"spanId":`))))
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, "{}")
}

func (c *collector) spans() int { return int(c.count.Load()) }

func (c *collector) close() { c.http.Close() }
