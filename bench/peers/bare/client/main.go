//go:build unix

// Client is the client without a library: it frames calls by hand and searches the answers.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/bench/peers/bare"
	"github.com/patchbay-dev/patchbay/bench/target/clientkit"
)

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}`

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func main() {
	o := clientkit.Parse()
	ctx := context.Background()
	switch o.Transport {
	case "stdio":
		c, err := startStdio(o.Server)
		if err != nil {
			clientkit.Fail(err)
		}
		clientkit.Run(ctx, o, c.call)
		c.out.Close()
		c.cmd.Wait()
	case "http":
		c, err := dial(ctx, o.URL)
		if err != nil {
			clientkit.Fail(err)
		}
		clientkit.Run(ctx, o, c.call)
	default:
		os.Exit(clientkit.Unsupported)
	}
}

// A stdioClient calls a server that it started. A goroutine, which ends with the server's
// output, passes the answers to their callers.
type stdioClient struct {
	cmd  *exec.Cmd
	out  io.WriteCloser
	last atomic.Int64

	mu      sync.Mutex
	waiting map[int64]chan answer // nil once the output ended; guarded by mu
	buf     []byte                // guarded by mu
}

type answer struct {
	text string
	err  error
}

func startStdio(argv []string) (*stdioClient, error) {
	c := &stdioClient{cmd: exec.Command(argv[0], argv[1:]...), waiting: map[int64]chan answer{}}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(in, 4<<20)
	if _, err := io.WriteString(c.out, initialize+"\n"); err != nil {
		return nil, err
	}
	if _, err := r.ReadSlice('\n'); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.out, initialized+"\n"); err != nil {
		return nil, err
	}
	go c.read(r)
	return c, nil
}

func (c *stdioClient) read(r *bufio.Reader) {
	for {
		line, err := r.ReadSlice('\n')
		if err == nil {
			var a answer
			a.text, a.err = bare.Text(line)
			id, _ := strconv.ParseInt(string(bare.Member(line, `"id":`)), 10, 64)
			c.mu.Lock()
			wait := c.waiting[id]
			delete(c.waiting, id)
			c.mu.Unlock()
			if wait != nil {
				wait <- a
			}
			continue
		}
		c.mu.Lock()
		for _, wait := range c.waiting {
			wait <- answer{err: fmt.Errorf("read an answer: %w", err)}
		}
		c.waiting = nil
		c.mu.Unlock()
		return
	}
}

var waits = sync.Pool{New: func() any { return make(chan answer, 1) }}

func (c *stdioClient) call(_ context.Context, text string) (string, error) {
	id := c.last.Add(1)
	wait := waits.Get().(chan answer)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return "", io.ErrUnexpectedEOF
	}
	c.waiting[id] = wait
	c.buf = append(bare.AppendCall(c.buf[:0], id, text), '\n')
	_, err := c.out.Write(c.buf)
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	a := <-wait
	waits.Put(wait)
	return a.text, a.err
}

// An httpClient calls a server of Streamable HTTP.
type httpClient struct {
	client  http.Client
	url     string
	session string
	last    atomic.Int64
	buffers sync.Pool // of *bytes.Buffer
}

func dial(ctx context.Context, url string) (*httpClient, error) {
	wire := http.DefaultTransport.(*http.Transport).Clone()
	wire.MaxIdleConnsPerHost = 256
	c := &httpClient{url: url, client: http.Client{Transport: wire}}
	for _, message := range []string{initialize, initialized} {
		res, err := c.post(ctx, []byte(message))
		if err != nil {
			return nil, err
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if c.session == "" {
			c.session = res.Header.Get("Mcp-Session-Id")
		}
	}
	return c, nil
}

func (c *httpClient) post(ctx context.Context, message []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["Accept"] = []string{"application/json, text/event-stream"}
	if c.session != "" {
		req.Header["Mcp-Session-Id"] = []string{c.session}
		req.Header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
	}
	return c.client.Do(req)
}

func (c *httpClient) call(ctx context.Context, text string) (string, error) {
	b, _ := c.buffers.Get().(*bytes.Buffer)
	if b == nil {
		b = new(bytes.Buffer)
	}
	defer c.buffers.Put(b)
	res, err := c.post(ctx, bare.AppendCall(nil, c.last.Add(1), text))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b.Reset()
	if _, err := b.ReadFrom(res.Body); err != nil {
		return "", err
	}
	return bare.Text(b.Bytes())
}
