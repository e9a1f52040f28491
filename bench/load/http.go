//go:build linux

package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/freeport"
)

// An HTTP is a server of Streamable HTTP at /mcp. Close ends it.
type HTTP struct {
	*Process
	Startup  time.Duration // from the start of the process to its first answer
	Addr     string
	Pause    time.Duration // of a connection between two calls of Echo; it is not part of the time of a call
	revision Revision
	header   string // of each request, beside those of the protocol
}

// Addr, in the arguments of StartHTTP, is replaced by the address to listen on.
const Addr = "{addr}"

// StartHTTP starts a server and waits until it answers.
func StartHTTP(ctx context.Context, r Revision, argv ...string) (*HTTP, error) {
	return startHTTP(ctx, r, "", argv)
}

// StartHTTPAs is StartHTTP for a server that asks for a bearer token.
func StartHTTPAs(ctx context.Context, r Revision, token string, argv ...string) (*HTTP, error) {
	return startHTTP(ctx, r, "Authorization: Bearer "+token+"\r\n", argv)
}

func startHTTP(ctx context.Context, r Revision, header string, argv []string) (*HTTP, error) {
	addr, err := freeport.Addr()
	if err != nil {
		return nil, err
	}
	argv = append([]string(nil), argv...)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], Addr, addr)
	}
	began := time.Now()
	p, err := start(ctx, false, argv)
	if err != nil {
		return nil, err
	}
	h := &HTTP{Process: p, Addr: addr, revision: r, header: header}
	if err := h.wait(ctx); err != nil {
		h.Close()
		return nil, err
	}
	h.Startup = time.Since(began)
	return h, nil
}

// wait waits until the server answers.
func (h *HTTP) wait(ctx context.Context) error {
	for {
		c, err := h.dial()
		if err == nil {
			err = c.open()
			c.Close()
			return h.explain(err)
		}
		select {
		case <-h.ended:
			return h.explain(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond / 2):
		}
	}
}

// A client is one connection. It is for one goroutine.
type client struct {
	net.Conn
	addr     string
	revision Revision
	header   string
	session  string
	id       int
	in       *bufio.Reader
	answer   response
}

// patience bounds the whole use of a connection.
const patience = time.Minute

func (h *HTTP) dial() (*client, error) {
	conn, err := net.Dial("tcp", h.Addr)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	return &client{Conn: conn, addr: h.Addr, revision: h.revision, header: h.header, id: firstID, in: bufio.NewReaderSize(conn, 32<<10)}, nil
}

// open makes the first exchange of a revision. A server without sessions does not return an
// id.
func (c *client) open() error {
	c.session = ""
	message, err := c.exchange(c.prepare(c.revision.open()))
	if err == nil {
		_, err = result(message)
	}
	if err != nil || c.revision == Modern {
		return err
	}
	c.session = c.answer.session
	if _, err := c.Write(c.prepare(&body{method: "notifications/initialized", bytes: []byte(initialized)}).bytes); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if c.answer.status/100 != 2 {
		return fmt.Errorf("initialized: status %d, %.200q", c.answer.status, c.answer.body)
	}
	return nil
}

func (c *client) prepare(b *body) frame {
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST /mcp HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\n%s", c.addr, c.header)
	if b.method != "initialize" {
		fmt.Fprintf(&head, "MCP-Protocol-Version: %s\r\n", c.revision)
	}
	if c.session != "" {
		fmt.Fprintf(&head, "Mcp-Session-Id: %s\r\n", c.session)
	}
	if c.revision == Modern {
		fmt.Fprintf(&head, "Mcp-Method: %s\r\n", b.method)
		if b.name != "" {
			fmt.Fprintf(&head, "Mcp-Name: %s\r\n", b.name)
		}
	}
	fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n", len(b.bytes))
	return frame{append(head.Bytes(), b.bytes...), head.Len() + b.idAt}
}

func (c *client) exchange(f frame) ([]byte, error) {
	c.id++
	putID(f.bytes[f.idAt:], c.id)
	if _, err := c.Write(f.bytes); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	message, err := c.answer.message()
	if err != nil {
		return nil, err
	}
	id, err := answerID(message)
	if err == nil && id != c.id {
		err = fmt.Errorf("answer to %d, want %d", id, c.id)
	}
	return message, err
}

func (c *client) read() error {
	if err := c.answer.readHead(c.in); err != nil {
		return err
	}
	return c.answer.readBody(c.in)
}

// clients opens n connections, each with a session of its own if the server has sessions.
func (h *HTTP) clients(n int) ([]*client, error) {
	all := make([]*client, n)
	for i := range all {
		c, err := h.dial()
		if err != nil {
			return all[:i], h.explain(err)
		}
		all[i] = c
		if err := c.open(); err != nil {
			return all[:i+1], h.explain(err)
		}
	}
	return all, nil
}

// Echo calls a tool for dur, after an unmeasured warm, on several connections, each with one
// call after the other.
func (h *HTTP) Echo(tool, text string, conns int, warm, dur time.Duration) (Sample, error) {
	all, err := h.clients(conns)
	defer closeAll(all)
	if err != nil {
		return Sample{}, err
	}
	wires := make([]wire, len(all))
	for i, c := range all {
		wires[i] = c
	}
	return measure(h.Process, wires, h.revision.call(tool, text), newEchoCheck(text), h.Pause, warm, dur)
}

// List reads the list of tools repeatedly for dur, after an unmeasured warm. A call of the
// sample is the whole list.
func (h *HTTP) List(tools int, warm, dur time.Duration) (Sample, error) {
	all, err := h.clients(1)
	defer closeAll(all)
	if err != nil {
		return Sample{}, err
	}
	return lists(h.Process, all[0], h.revision, tools, warm, dur)
}

func closeAll(all []*client) {
	for _, c := range all {
		c.Close()
	}
}

// Idle opens n sessions, each with a standing GET stream if streams is set, and returns the
// bytes of memory that one idle session adds to the server.
func (h *HTTP) Idle(ctx context.Context, n int, streams bool) (float64, error) {
	const workers = 8
	var mu sync.Mutex
	var held []*client // guarded by mu
	defer func() { closeAll(held) }()
	open := func(n int) error {
		errs := make([]error, workers)
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				c, err := h.dial()
				if err != nil {
					errs[w] = err
					return
				}
				defer c.Close()
				for range (n + w) / workers {
					if errs[w] = c.open(); errs[w] != nil {
						return
					}
					if c.session == "" {
						errs[w] = ErrUnsupported
						return
					}
					if !streams {
						continue
					}
					stream, err := h.stream(c.session)
					if err != nil {
						errs[w] = err
						return
					}
					mu.Lock()
					held = append(held, stream)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
	// The first sessions also pay for one-time allocations.
	if err := open(max(n/10, workers)); err != nil {
		return 0, h.explain(err)
	}
	before, err := h.settle(ctx)
	if err != nil {
		return 0, h.explain(err)
	}
	if err := open(n); err != nil {
		return 0, h.explain(err)
	}
	after, err := h.settle(ctx)
	return float64(after-before) / float64(n), h.explain(err)
}

// stream opens the GET stream of a session.
func (h *HTTP) stream(session string) (*client, error) {
	c, err := h.dial()
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c, "GET /mcp HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1\r\nAccept: text/event-stream\r\n"+
		"MCP-Protocol-Version: %s\r\nMcp-Session-Id: %s\r\n\r\n", c.addr, c.revision, session)
	if err == nil {
		err = c.answer.readHead(c.in)
	}
	if err == nil && c.answer.status == 405 {
		err = ErrUnsupported
	}
	if err == nil && (c.answer.status != 200 || !c.answer.sse) {
		err = fmt.Errorf("GET stream: status %d", c.answer.status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.in = nil // the stream is not read
	return c, nil
}

// Tool waits until the server lists a tool with this suffix, and returns its name, because a
// gateway adds a prefix, and may have to wait for its own servers.
func (h *HTTP) Tool(ctx context.Context, suffix string) (string, error) {
	all, err := h.clients(1)
	defer closeAll(all)
	if err != nil {
		return "", err
	}
	f := all[0].prepare(h.revision.list(""))
	for {
		answer, err := all[0].exchange(f)
		if err != nil {
			return "", h.explain(err)
		}
		raw, err := result(answer)
		if err != nil {
			return "", err
		}
		var list struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(raw, &list); err != nil {
			return "", fmt.Errorf("list %.200q: %w", raw, err)
		}
		for _, t := range list.Tools {
			if strings.HasSuffix(t.Name, suffix) {
				return t.Name, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no tool %q in %.200q: %w", suffix, raw, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
