//go:build linux

package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
)

// A Stdio is a server on standard streams. It is for one goroutine; Close ends it.
type Stdio struct {
	*Process
	Startup  time.Duration // from the start of the process to its first answer
	revision Revision
	id       int
	in       *bufio.Reader
	out      io.Writer
}

// StartStdio starts a server and opens it in a revision.
func StartStdio(ctx context.Context, r Revision, argv ...string) (*Stdio, error) {
	began := time.Now()
	p, err := start(ctx, true, argv)
	if err != nil {
		return nil, err
	}
	s := &Stdio{Process: p, revision: r, id: firstID, in: bufio.NewReaderSize(p.stdout, maxAnswer), out: p.stdin}
	answer, err := s.exchange(s.prepare(r.open()))
	s.Startup = time.Since(began)
	if err == nil {
		_, err = result(answer)
	}
	if err == nil && r == Legacy {
		_, err = io.WriteString(s.out, initialized+"\n")
	}
	if err != nil {
		err = s.explain(err)
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stdio) prepare(b *body) frame {
	return frame{append(bytes.Clone(b.bytes), '\n'), b.idAt}
}

func (s *Stdio) exchange(f frame) ([]byte, error) {
	s.id++
	putID(f.bytes[f.idAt:], s.id)
	if _, err := s.out.Write(f.bytes); err != nil {
		return nil, err
	}
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		id, err := answerID(line)
		if err != nil && bytes.Contains(line, []byte(`"method"`)) {
			continue // a notification
		}
		if err == nil && id != s.id {
			err = fmt.Errorf("answer to %d, want %d", id, s.id)
		}
		return line, err
	}
}

// line returns the next line, valid until the next call.
func (s *Stdio) line() ([]byte, error) {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	return line, nil
}

// ready reports whether a whole line is buffered.
func (s *Stdio) ready() bool {
	b, _ := s.in.Peek(s.in.Buffered())
	return bytes.IndexByte(b, '\n') >= 0
}

// Echo calls a tool for dur, after an unmeasured warm, with inFlight calls at a time. It
// writes without reading, so several calls must fit into a pipe of 64 KiB.
func (s *Stdio) Echo(tool, text string, inFlight int, warm, dur time.Duration) (Sample, error) {
	b, check := s.revision.call(tool, text), newEchoCheck(text)
	if inFlight == 1 {
		return measure(s.Process, []wire{s}, b, check, 0, warm, dur)
	}
	f := s.prepare(b)
	if _, err := measure(s.Process, []wire{s}, b, check, 0, 0, 0); err != nil { // checks the first answer
		return Sample{}, err
	}
	if _, err := s.pipelined(f, check, inFlight, warm); err != nil {
		return Sample{}, s.explain(err)
	}
	before := s.CPU()
	times, err := s.pipelined(f, check, inFlight, dur)
	return newSample(times, s.CPU()-before), s.explain(err)
}

// pipelined keeps inFlight calls in progress for d, and returns the duration of each. The
// calls answered in one read are followed by as many in one write.
func (s *Stdio) pipelined(f frame, check *echoCheck, inFlight int, d time.Duration) ([]time.Duration, error) {
	type slot struct {
		id   int // base plus the slot's number, modulo inFlight
		sent time.Time
	}
	slots, base := make([]slot, inFlight), s.id+1
	times := make([]time.Duration, 0, 1<<16)
	var out []byte
	now := time.Now()
	end := now.Add(d)
	for i := range slots {
		slots[i] = slot{base + i, now}
		putID(f.bytes[f.idAt:], base+i)
		out = append(out, f.bytes...)
	}
	for open := inFlight; open > 0; {
		if _, err := s.out.Write(out); err != nil {
			return nil, err
		}
		out = out[:0]
		for first := true; first || s.ready(); first = false {
			line, err := s.line()
			if err == nil {
				err = check.check(line)
			}
			if err != nil {
				return nil, err
			}
			id, err := answerID(line)
			if err != nil {
				return nil, err
			}
			i := (max(id, base) - base) % inFlight
			if slots[i].id != id {
				return nil, fmt.Errorf("answer to %d, which is not in flight", id)
			}
			now = time.Now()
			times = append(times, now.Sub(slots[i].sent))
			s.id = max(s.id, id)
			if now.After(end) {
				slots[i].id = 0
				open--
				continue
			}
			slots[i] = slot{id + inFlight, now}
			putID(f.bytes[f.idAt:], id+inFlight)
			out = append(out, f.bytes...)
		}
	}
	return times, nil
}

// List reads the list of tools repeatedly for dur, after an unmeasured warm. A call of the
// sample is the whole list.
func (s *Stdio) List(tools int, warm, dur time.Duration) (Sample, error) {
	return lists(s.Process, s, s.revision, tools, warm, dur)
}
