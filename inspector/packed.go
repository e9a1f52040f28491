package inspector

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

// packedFrame is a frame in one piece. The collector of garbage does not look into it, and a page that is open keeps some ten
// thousand frames in a program that is busy with others.
type packedFrame []byte

// packFrame packs a frame.
func packFrame(f *trace.Frame) packedFrame {
	n := 64 + len(f.Msg) + len(f.Raw) + len(f.Conn) + len(f.Note) + len(f.Transport) + len(f.For.Conn) + len(f.For.ID)
	if f.HTTP != nil {
		n += len(f.HTTP.Path) + 64*len(f.HTTP.Headers)
	}
	return slices.Clip(appendFrame(make(packedFrame, 0, n), f))
}

// appendFrame packs a frame behind others.
func appendFrame(dst packedFrame, f *trace.Frame) packedFrame {
	p := packer{dst}
	p.text(string(f.Dir))
	p.text(string(f.Kind))
	p.text(f.Conn)
	p.text(f.Transport)
	p.text(f.For.Conn)
	p.text(f.For.ID)
	p.text(f.Event)
	p.text(f.Note)
	p.bytes(f.Msg)
	p.bytes(f.Raw)
	for _, v := range []int{f.Lost, f.Size, f.Cut, len(f.Args)} {
		p.int(v)
	}
	for _, arg := range f.Args {
		p.text(arg)
	}
	if f.Time.IsZero() {
		p.int(-1)
	} else {
		_, zone := f.Time.Zone()
		p.int(f.Time.Nanosecond())
		p.int(int(f.Time.Unix()))
		p.int(zone)
	}
	if h := f.HTTP; h != nil {
		p.int(h.Exchange)
		p.int(h.Status)
		p.text(h.Method)
		p.text(h.Path)
		for name, values := range h.Headers {
			p.text(name)
			p.int(len(values))
			for _, v := range values {
				p.text(v)
			}
		}
	}
	return p.out
}

// frame returns the frame, whose bytes are those of the packed one.
func (p packedFrame) frame() *trace.Frame {
	u := unpacker{p}
	f := &trace.Frame{Dir: trace.Dir(u.text()), Kind: trace.Kind(u.text()), Conn: u.text(), Transport: u.text()}
	f.For = trace.Cause{Conn: u.text(), ID: u.text()}
	f.Event, f.Note, f.Msg, f.Raw = u.text(), u.text(), u.bytes(), u.bytes()
	f.Lost, f.Size, f.Cut = u.int(), u.int(), u.int()
	for range u.int() {
		f.Args = append(f.Args, u.text())
	}
	if ns := u.int(); ns >= 0 {
		f.Time = time.Unix(int64(u.int()), int64(ns)).UTC()
		if zone := u.int(); zone != 0 {
			f.Time = f.Time.In(time.FixedZone("", zone))
		}
	}
	if len(u.in) == 0 {
		return f
	}
	f.HTTP = &trace.HTTP{Exchange: u.int(), Status: u.int(), Method: u.text(), Path: u.text()}
	for len(u.in) > 0 {
		if f.HTTP.Headers == nil {
			f.HTTP.Headers = map[string][]string{}
		}
		name := u.text()
		values := make([]string, u.int())
		for i := range values {
			values[i] = u.text()
		}
		f.HTTP.Headers[name] = values
	}
	return f
}

type packer struct{ out packedFrame }

func (p *packer) int(n int)      { p.out = binary.AppendVarint(p.out, int64(n)) }
func (p *packer) text(s string)  { p.int(len(s)); p.out = append(p.out, s...) }
func (p *packer) bytes(b []byte) { p.int(len(b)); p.out = append(p.out, b...) }

// unpacker reads what packer has written.
type unpacker struct{ in packedFrame }

func (u *unpacker) int() int {
	n, size := binary.Varint(u.in)
	u.in = u.in[size:]
	return int(n)
}

func (u *unpacker) text() string { return string(u.bytes()) }

func (u *unpacker) bytes() []byte {
	n := u.int()
	if n == 0 {
		return nil
	}
	b := u.in[:n:n]
	u.in = u.in[n:]
	return b
}
