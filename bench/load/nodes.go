//go:build linux

package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// Nodes are servers that a client may take for one.
type Nodes []*HTTP

// Way says at which of several nodes a client that has opened its session at one of them calls.
type Way int

// The ways of a client.
const (
	Sticky Way = iota // at that node
	Away              // at the next one
	Turns             // at each in turn
)

// round is the wire of a client with a connection to each node at which it calls.
type round struct {
	to   []*client
	turn int
}

func (r *round) prepare(b *body) frame { return r.to[0].prepare(b) }

func (r *round) exchange(f frame) ([]byte, error) {
	r.turn++
	return r.to[r.turn%len(r.to)].exchange(f)
}

// clients opens n wires, whose sessions are at the nodes in turn. The connections are to be closed even after an error.
func (n Nodes) clients(count int, r Revision, way Way) (all []*client, wires []wire, err error) {
	for i := range count {
		w := &round{}
		for j := range n {
			h := n[(i+j)%len(n)]
			if j > 0 && way == Sticky || j > 1 && way == Away {
				break
			}
			c, err := h.dial()
			if err != nil {
				return all, nil, h.explain(err)
			}
			all = append(all, c)
			if c.revision = r; j > 0 {
				c.session = w.to[0].session
			} else if err := c.open(); err != nil {
				return all, nil, h.explain(err)
			}
			w.to = append(w.to, c)
		}
		if way == Away {
			w.to = w.to[1:]
		}
		wires = append(wires, w)
	}
	return all, wires, nil
}

// Echo calls a tool for dur, after an unmeasured warm, as several clients of a revision, each with one call after the other. The CPU
// is that of all nodes.
func (n Nodes) Echo(r Revision, way Way, tool, text string, conns int, warm, dur time.Duration) (Sample, error) {
	all, wires, err := n.clients(conns, r, way)
	defer closeAll(all)
	if err != nil {
		return Sample{}, err
	}
	together := new(Process)
	for _, h := range n {
		together.family = append(together.family, h.family...)
	}
	return measure(together, wires, r.call(tool, text), newEchoCheck(text), 0, warm, dur)
}

// Takeover opens sessions at the first of the nodes, kills it, and returns how long each takes until a call at another node is answered. A
// call that is refused is made again every 20 ms.
func (n Nodes) Takeover(tool, text string, sessions int) ([]time.Duration, error) {
	all, wires, err := n.clients(sessions*len(n), Legacy, Away)
	defer closeAll(all)
	if err != nil {
		return nil, err
	}
	var moving []*client
	for i := 0; i < len(wires); i += len(n) {
		moving = append(moving, wires[i].(*round).to[0])
	}
	body, check := Legacy.call(tool, text), newEchoCheck(text)
	for _, c := range moving {
		if _, err := c.exchange(c.prepare(body)); err != nil {
			return nil, err
		}
	}
	time.Sleep(rand.N(time.Second)) // nodes say once a second that they live
	began := time.Now()
	if err := n[0].cmd.Process.Kill(); err != nil {
		return nil, err
	}
	took, errs := make([]time.Duration, len(moving)), make(chan error)
	for i, c := range moving {
		go func() {
			for {
				answer, err := c.exchange(c.prepare(body))
				if err == nil {
					err = check.decode(answer)
				}
				took[i] = time.Since(began)
				if lost := net.Error(nil); err == nil || errors.As(err, &lost) || took[i] > patience {
					errs <- err
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	for range moving {
		if late := <-errs; late != nil {
			err = fmt.Errorf("a call after the death of a node: %w", late)
		}
	}
	return took, err
}
