//go:build unix

// Server is the echo server without a library, on the standard streams or net/http.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/patchbay-dev/patchbay/bench/peers/bare"
	"github.com/patchbay-dev/patchbay/bench/target/serverkit"
)

func main() {
	o := serverkit.Parse()
	s := bare.NewServer(o.Tools)
	if o.Transport == "stdio" {
		serverkit.Check(serveStdio(s, os.Stdin, os.Stdout))
		return
	}
	h := &handler{server: s, stateful: o.Session == "stateful", sse: o.Resp == "sse"}
	serverkit.ListenAndServe(o, h)
}

// serveStdio answers line by line, and writes when its input is drained.
func serveStdio(s *bare.Server, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriterSize(out, 64<<10)
	var long, answer []byte
	for {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			long = append(long, line...)
			continue
		}
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if answer = s.Answer(answer[:0], line); len(answer) > 0 {
			w.Write(append(answer, '\n'))
		}
		long = long[:0]
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// A handler serves Streamable HTTP.
type handler struct {
	server        *bare.Server
	stateful, sse bool
	sessions      sync.Map // of ids
	buffers       sync.Pool
}

type buffers struct {
	in  bytes.Buffer
	out []byte
}

var jsonType, streamType = []string{"application/json"}, []string{"text/event-stream"}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	switch r.Method {
	case http.MethodGet:
		if _, ok := h.sessions.Load(id); !ok {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header()["Content-Type"] = streamType
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case http.MethodDelete:
		h.sessions.Delete(id)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	b, _ := h.buffers.Get().(*buffers)
	if b == nil {
		b = new(buffers)
	}
	defer h.buffers.Put(b)
	b.in.Reset()
	b.in.Grow(int(min(max(r.ContentLength, 0), 8<<20)) + bytes.MinRead)
	if _, err := b.in.ReadFrom(r.Body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.out = b.out[:0]
	kind := jsonType
	if h.sse {
		kind = streamType
		b.out = append(b.out, "event: message\ndata: "...)
	}
	head := len(b.out)
	if b.out = h.server.Answer(b.out, b.in.Bytes()); len(b.out) == head {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if h.sse {
		b.out = append(b.out, "\n\n"...)
	}
	w.Header()["Content-Type"] = kind
	if h.stateful && id == "" && r.Header.Get("Mcp-Method") == "" { // that can only be initialize
		id := rand.Text()
		h.sessions.Store(id, struct{}{})
		w.Header()["Mcp-Session-Id"] = []string{id}
	}
	w.Write(b.out)
}
