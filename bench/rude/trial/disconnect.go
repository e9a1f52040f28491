//go:build linux

package trial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rudeness is one way to disconnect.
type rudeness struct {
	name string
	do   func(c *client) error
}

// client is one connection of a client that disconnects abruptly.
type client struct {
	conn *net.TCPConn
	in   *bufio.Reader
	host string
	rnd  *rand.Rand
}

// reset makes the connection end with RST.
func (c *client) reset() { c.conn.SetLinger(0) }

// send writes an HTTP request, or the first part of it.
func (c *client) send(method, header, body string, part float64) error {
	text := fmt.Sprintf("%s /mcp HTTP/1.1\r\nHost: %s\r\nAccept: application/json, text/event-stream\r\n%s", method, c.host, header)
	if method == "POST" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	text += "\r\n" + body
	_, err := io.WriteString(c.conn, text[:int(float64(len(text))*part)])
	return err
}

// event reads the beginning of the answer: up to the first event of a stream, or the whole
// head of another answer. It returns the head.
func (c *client) event() (string, error) {
	var head strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(line) == "" {
			break
		}
		head.WriteString(strings.ToLower(line))
	}
	if !strings.Contains(head.String(), "text/event-stream") {
		return head.String(), nil
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "data:") {
			return head.String(), err
		}
	}
}

const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"rude","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

// post sends a request of revision 2026-07-28, or the first part of it.
func (c *client) post(method, name, params string, part float64) error {
	header := "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n"
	if name != "" {
		header += "Mcp-Name: " + name + "\r\n"
	}
	return c.send("POST", header, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+modern+params+`}}`, part)
}

// call calls a tool of any of the servers.
func (c *client) call(tool, arguments, meta string, part float64) error {
	servers := []string{"plain", "deaf", "forks", "each", "slow", "here"}
	name := servers[c.rnd.IntN(len(servers))] + "_" + tool
	return c.post("tools/call", name, meta+`},"name":"`+name+`","arguments":`+arguments, part)
}

func (c *client) long(part float64) error {
	return c.call("long_operation", `{"seconds":20,"steps":1000}`, `,"progressToken":1`, part)
}

// manners are the ways to disconnect.
var manners = []rudeness{
	{"says nothing", func(c *client) error { return nil }},
	{"half a head", func(c *client) error { return c.call("echo", `{"message":"hi"}`, "", 0.1) }},
	{"half a body, RST", func(c *client) error { c.reset(); return c.call("echo", `{"message":"hi"}`, "", 0.9) }},
	{"does not read", func(c *client) error { return c.call("echo", `{"message":"hi"}`, "", 1) }},
	{"does not read, RST", func(c *client) error { c.reset(); return c.call("echo", `{"message":"hi"}`, "", 1) }},
	{"in a call", func(c *client) error { return c.long(1) }},
	{"in a call, RST", func(c *client) error { c.reset(); return c.long(1) }},
	{"in a stream", func(c *client) error { return errors.Join(c.long(1), second(c.event())) }},
	{"in a stream, RST", func(c *client) error { c.reset(); return errors.Join(c.long(1), second(c.event())) }},
	{"in a list", func(c *client) error { c.reset(); return c.post("tools/list", "", "}", 1) }},
	{"listening", func(c *client) error {
		c.reset()
		return errors.Join(c.post("subscriptions/listen", "", `},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://watched-resource"]}`, 1), second(c.event()))
	}},
	{"in a session", func(c *client) error { c.reset(); _, err := c.session(); return err }},
	{"in a call of a session", func(c *client) error {
		c.reset()
		id, err := c.session()
		if err != nil {
			return err
		}
		const body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"each_long_operation","arguments":{"seconds":0.5,"steps":50},"_meta":{"progressToken":1}}}`
		return errors.Join(c.send("POST", "Mcp-Session-Id: "+id+"\r\nMcp-Protocol-Version: 2025-06-18\r\n", body, 1), second(c.event()))
	}},
	{"at the stream of a session", func(c *client) error {
		c.reset()
		id, err := c.session()
		if err != nil {
			return err
		}
		return c.send("GET", "Mcp-Session-Id: "+id+"\r\nMcp-Protocol-Version: 2025-06-18\r\n", "", 1)
	}},
}

func second(_ string, err error) error { return err }

// session opens a session of 2025-06-18 and returns its id. The answer has been read.
func (c *client) session() (string, error) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"rude","version":"1"}}}`
	if err := c.send("POST", "", body, 1); err != nil {
		return "", err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if id := res.Header.Get("Mcp-Session-Id"); id != "" || err != nil {
		return id, err
	}
	return "", fmt.Errorf("no session: HTTP %d", res.StatusCode)
}

// leave connects and disconnects in one of the ways.
func (m rudeness) leave(ctx context.Context, address string, rnd *rand.Rand) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return m.do(&client{conn.(*net.TCPConn), bufio.NewReader(conn), address, rnd})
}

// Disconnected is the result of n disconnects.
type Disconnected struct {
	Took          time.Duration
	Failed        int64 // clients that were refused, or not answered
	Before, After holding
	Answer        time.Duration // of an ordinary call afterwards
}

// settleTime bounds the time until the program has released everything. Calls of sessions go
// on for half a second after their client has left, and connections for single clients are
// kept for another half second.
const settleTime = 15 * time.Second

// spare is the number of additional descriptors that the program may hold afterwards: idle
// connections of this process, and descriptors of the runtime.
const spare = 8

// Disconnect makes n clients disconnect abruptly, and returns an error if the program then
// holds more descriptors or processes than before or does not answer an ordinary call, or if
// any process outlives it.
func Disconnect(ctx context.Context, p Program, n int, seed uint64) (*Disconnected, error) {
	r, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	if err := r.await(ctx, r.shown); err != nil {
		return nil, err
	}
	d := new(Disconnected)
	if err := r.leave(ctx, d, 4*len(manners), seed); err != nil { // one-time allocations happen here
		return d, err
	}
	if d.Before, err = r.settle(ctx, holding{}); err != nil {
		return d, err
	}
	start := time.Now()
	d.Failed = 0
	if err := r.leave(ctx, d, n, seed+1); err != nil {
		return d, err
	}
	d.Took = time.Since(start)
	if d.After, err = r.settle(ctx, d.Before); err != nil {
		return d, err
	}
	start = time.Now()
	answer, err := r.ordinary(ctx)
	d.Answer = time.Since(start)
	switch {
	case err != nil || !strings.Contains(answer, `"text":"still here"`):
		return d, fmt.Errorf("an ordinary call afterwards: %q, %v", answer, err)
	case d.After.FDs > d.Before.FDs+spare || d.After.Children > d.Before.Children:
		return d, fmt.Errorf("the program holds %+v, before it was %+v; its servers: %s", d.After, d.Before, r.servers(ctx))
	}
	r.cmd.Process.Signal(interrupt)
	if took, left := gone(ctx, r.marker, endTime); len(left) > 0 {
		return d, fmt.Errorf("%v after ctrl-C there are still %s", took, names(left))
	}
	return d, nil
}

// parallel is the number of clients that disconnect at a time.
const parallel = 16

// leave makes n clients disconnect.
func (r *run) leave(ctx context.Context, d *Disconnected, n int, seed uint64) error {
	var next atomic.Int64
	var failed atomic.Int64
	var wg sync.WaitGroup
	for i := range parallel {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for {
				k := next.Add(1) - 1
				if k >= int64(n) || ctx.Err() != nil {
					return
				}
				if err := manners[k%int64(len(manners))].leave(ctx, r.address, rnd); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	d.Failed += failed.Load()
	select {
	case <-r.ended:
		return fmt.Errorf("the program ended: %v; it said: %s", r.cmd.ProcessState, &r.said)
	default:
		return ctx.Err()
	}
}

// settle waits, up to a limit, until the program holds no more than before, and returns what it
// holds. If before is the zero value, it waits until the program's holding no longer changes.
func (r *run) settle(ctx context.Context, before holding) (holding, error) {
	var last holding
	still := 0
	for deadline := time.Now().Add(settleTime); ; time.Sleep(100 * time.Millisecond) {
		now, err := held(r.cmd.Process.Pid)
		if err != nil {
			return now, err
		}
		now.Children = len(marked(r.marker))
		if now.FDs == last.FDs && now.Children == last.Children {
			still++
		} else {
			still = 0
		}
		last = now
		calm := before.FDs == 0 && still >= 15 || before.FDs > 0 && now.FDs <= before.FDs+spare && now.Children <= before.Children
		if calm || time.Now().After(deadline) || ctx.Err() != nil {
			return now, ctx.Err()
		}
	}
}

// servers asks the program for the states of its servers.
func (r *run) servers(ctx context.Context) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return string(body)
}

// ordinary makes a complete call.
func (r *run) ordinary(ctx context.Context) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	c := &client{conn.(*net.TCPConn), bufio.NewReader(conn), r.address, nil}
	if err := c.post("tools/call", "plain_echo", `},"name":"plain_echo","arguments":{"message":"still here"}`, 1); err != nil {
		return "", err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
