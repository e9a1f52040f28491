package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func noClose() error { return nil }

func TestLineConnRead(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than the read buffer
	for _, tt := range []struct {
		name, in string
		max      int
		want     []string
	}{
		{"lines", "{\"a\":1}\n[2]\n", 0, []string{`{"a":1}`, `[2]`, "EOF"}},
		{"CRLF", "1\r\n2\r\n", 0, []string{`1`, `2`, "EOF"}},
		{"empty lines", "\n\r\n \t\n1\n\n", 0, []string{`1`, "EOF"}},
		{"no last newline", "1\n2", 0, []string{`1`, `2`, "EOF"}},
		{"only space at the end", "1\n ", 0, []string{`1`, "EOF"}},
		{"nothing", "", 0, []string{"EOF"}},
		{"space is kept", " 1 \n", 0, []string{` 1 `, "EOF"}},
		{"long", long + "\n1\n", 0, []string{long, "1", "EOF"}},
		{"at the bound", "12345\n12345\r\n123456\n1\n", 5, []string{"12345", "12345", "too large 123456", "1", "EOF"}},
		{"over the bound", "1\n" + long + "\r\n2\n", 50_000, []string{"1", "too large " + long[:512], "2", "EOF"}},
		{"over the bound at the end", "1\n" + long, 50_000, []string{"1", "too large " + long[:512], "EOF"}},
		{"just over, no newline", "123456", 5, []string{"too large 123456", "EOF"}},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.in),
			"bytes": &oneByte{strings.NewReader(tt.in)},
		} {
			c := jsonrpc.NewLineConn(r, io.Discard, noClose, tt.max)
			var buf []byte
			for i, want := range append(tt.want, "EOF") { // EOF stays
				frame, err := c.Read(buf)
				got := string(frame)
				var large *jsonrpc.FrameTooLargeError
				if errors.As(err, &large) {
					got = "too large " + string(large.Head)
				} else if err != nil {
					got = err.Error()
				} else {
					buf = frame
				}
				if got != want {
					t.Fatalf("%s, %s: read %d gave %.80q, want %.80q", tt.name, how, i, got, want)
				}
			}
		}
	}
}

type oneByte struct{ r io.Reader }

func (o *oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// The id of a frame that was skipped can be read from its head.
func TestFrameTooLargeKeepsID(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"` + strings.Repeat("y", 5000) + "\"}}\n"
	_, err := jsonrpc.NewLineConn(strings.NewReader(in), io.Discard, noClose, 1000).Read(nil)
	var large *jsonrpc.FrameTooLargeError
	if !errors.As(err, &large) || large.Limit != 1000 {
		t.Fatalf("Read = %v, want a FrameTooLargeError", err)
	}
	_, err = jsonrpc.Decode(large.Head, jsonrpc.Limits{})
	var d *jsonrpc.DecodeError
	if !errors.As(err, &d) || d.ID != jsonrpc.IntID(7) {
		t.Errorf("Decode of the head = %v, want the id 7", err)
	}
}

// endless is a reader of a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

// A frame that does not end closes the connection, with its size in the error; a long frame that
// ends does not.
func TestEndlessFrame(t *testing.T) {
	const limit = 100_000
	most := jsonrpc.EndlessFrame * limit
	in := io.MultiReader(strings.NewReader("1\n"+strings.Repeat("y", most-limit)+"\n2\n"), &endless{})
	c := jsonrpc.NewLineConn(in, io.Discard, noClose, limit)
	var large *jsonrpc.FrameTooLargeError
	for _, want := range []string{"1", "", "2", ""} {
		if f, err := c.Read(nil); string(f) != want || (want == "") != errors.As(err, &large) {
			t.Fatalf("Read = %.20q, %v; want %q", f, err, want)
		}
	}
	for range 2 {
		f, err := c.Read(nil)
		var end *jsonrpc.EndlessFrameError
		if f != nil || !errors.As(err, &end) || end.Limit != limit || end.Read <= most || end.Read > most+limit {
			t.Errorf("Read = %.20q, %v; want an EndlessFrameError that names the bytes", f, err)
		}
	}
}

// F2: a flood that is not JSON ends the connection, even if an answer ends a line of it now and
// then.
func TestFloodWithLineEnds(t *testing.T) {
	const limit = 100_000
	line := strings.Repeat("x", 3*limit) + `{"id":7,"result":{}}` + "\n"
	for name, tt := range map[string]struct {
		in   string
		ends bool
	}{
		"junk":                 {strings.Repeat(line, 8), true},
		"junk between answers": {strings.Repeat(line+"1\n", 8), false},
		"large answers":        {strings.Repeat("{"+line, 8), false},
	} {
		c := jsonrpc.NewLineConn(strings.NewReader(tt.in), io.Discard, noClose, limit)
		var err error
		for large := (*jsonrpc.FrameTooLargeError)(nil); err == nil || errors.As(err, &large); {
			_, err = c.Read(nil)
		}
		var end *jsonrpc.EndlessFrameError
		if errors.As(err, &end) != tt.ends || !tt.ends && err != io.EOF {
			t.Errorf("%s: the connection ends with %v", name, err)
		}
	}
}

// F2: a frame is refused as soon as it is over the limit, before its end; frames after its end
// are read.
func TestFrameOverTheLimitIsRefusedAtOnce(t *testing.T) {
	r, w := io.Pipe()
	c := jsonrpc.NewLineConn(r, io.Discard, r.Close, 1000)
	defer c.Close()
	rest := make(chan struct{})
	go func() {
		w.Write([]byte(`{"id":7,"result":"` + strings.Repeat("y", 1000)))
		<-rest
		w.Write([]byte(strings.Repeat("y", 9000) + "\"}\n2\n"))
	}()
	var large *jsonrpc.FrameTooLargeError
	if f, err := c.Read(nil); !errors.As(err, &large) || large.Limit != 1000 || !strings.HasPrefix(string(large.Head), `{"id":7,`) {
		t.Errorf("Read = %.20q, %v; want a FrameTooLargeError with the head of the frame", f, err)
	}
	close(rest)
	if f, err := c.Read(nil); string(f) != "2" || err != nil {
		t.Errorf("the next Read = %.20q, %v; want 2", f, err)
	}
}

func TestLineConnReadError(t *testing.T) {
	broken := errors.New("broken")
	c := jsonrpc.NewLineConn(io.MultiReader(strings.NewReader("1\nhalf"), &failing{broken}), io.Discard, noClose, 0)
	if f, err := c.Read(nil); string(f) != "1" || err != nil {
		t.Fatalf("Read = %q, %v", f, err)
	}
	for range 2 {
		if f, err := c.Read(nil); f != nil || err != broken {
			t.Errorf("Read = %q, %v, want the error of the reader", f, err)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// STDIO-26-001: a frame is one line, whatever white space is in it.
func TestLineConnWrite(t *testing.T) {
	var writes []string
	c := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) {
		writes = append(writes, string(p))
		return len(p), nil
	}), noClose, 0)
	for _, f := range []string{`{"a":1}`, "{\r\n\"a\": \"\\n\"\n}\n"} {
		if err := c.Write([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"{\"a\":1}\n", "{\"a\": \"\\n\"}\n"}; fmt.Sprint(writes) != fmt.Sprint(want) {
		t.Errorf("writes %q, want %q", writes, want)
	}
}

// Frames of many writers arrive whole, once, and in the order of each writer.
func TestLineConnManyWriters(t *testing.T) {
	const writers, frames = 16, 200
	r, w := io.Pipe()
	c := jsonrpc.NewLineConn(strings.NewReader(""), w, w.Close, 0)
	peer := jsonrpc.NewLineConn(r, io.Discard, r.Close, 0)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			pad := strings.Repeat("z", i*300)
			for n := range frames {
				if err := c.Write(fmt.Appendf(nil, `[%d,%d,"%s"]`, i, n, pad)); err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	go func() {
		wg.Wait()
		c.Close()
	}()
	var next [writers]int
	var buf []byte
	for {
		frame, err := peer.Read(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		buf = frame
		var i, n int
		if _, err := fmt.Sscanf(string(frame), "[%d,%d,", &i, &n); err != nil || len(frame) != len(fmt.Sprintf(`[%d,%d,""]`, i, n))+i*300 {
			t.Fatalf("frame %q is not whole (%v)", frame, err)
		}
		if n != next[i] {
			t.Fatalf("writer %d: frame %d came, want %d", i, n, next[i])
		}
		next[i]++
	}
	for i, n := range next {
		if n != frames {
			t.Errorf("writer %d: %d frames came, want %d", i, n, frames)
		}
	}
}

// Frames that wait for a slow write go out together, and a full batch makes
// writers wait.
func TestLineConnCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var sizes []int
		c := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) {
			sizes = append(sizes, len(p))
			return w.Write(p)
		}), w.Close, 0)
		frame := bytes.Repeat([]byte("x"), 60_000)
		written := 0
		var mu sync.Mutex
		for range 6 {
			go func() {
				if err := c.Write(frame); err != nil {
					t.Error(err)
				}
				mu.Lock()
				written++
				mu.Unlock()
			}()
		}
		synctest.Wait()
		if len(sizes) != 1 || written != 0 {
			t.Fatalf("while the first write blocks: %d writes begun, %d done", len(sizes), written)
		}
		if _, err := io.CopyN(io.Discard, r, 6*60_001); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// The scheduler decides which waiting writer goes first.
		sum := 0
		for _, n := range sizes {
			if sum += n; n > 256<<10 {
				t.Errorf("a write of %d bytes, over the bound of a batch", n)
			}
		}
		if len(sizes) > 5 || sizes[0] != 60_001 || sum != 6*60_001 || written != 6 {
			t.Errorf("sizes of the writes %v, %d done, want the first alone, fewer than one a frame, 6 done", sizes, written)
		}
	})
}

func TestLineConnWriteErrors(t *testing.T) {
	r, w := io.Pipe()
	c := jsonrpc.NewLineConn(strings.NewReader(""), w, w.Close, 0)
	r.Close()
	for range 2 {
		if err := c.Write([]byte("1")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write after the peer is gone = %v, want io.ErrClosedPipe", err)
		}
	}
	short := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) { return 1, nil }), noClose, 0)
	if err := short.Write([]byte("1")); err != io.ErrShortWrite {
		t.Errorf("Write that was cut = %v, want io.ErrShortWrite", err)
	}
}

// A failed write fails the frames that waited for it too.
func TestLineConnWriteErrorReachesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		release := make(chan struct{})
		calls := 0
		c := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) {
			calls++
			<-release
			return 0, broken
		}), noClose, 0)
		errs := make(chan error, 5)
		for range 5 {
			go func() { errs <- c.Write([]byte("1")) }()
		}
		synctest.Wait()
		close(release)
		for range 5 {
			if err := <-errs; err != broken {
				t.Errorf("Write = %v, want the error of the writer", err)
			}
		}
		if calls != 1 {
			t.Errorf("%d writes, want none after the failed one", calls)
		}
	})
}

// Close unblocks a reader, the writer in Write and those that wait for it. If nothing can
// interrupt r and w, a pending Read or Write returns when r or w does.
func TestCloseUnblocks(t *testing.T) {
	pipe := func() (jsonrpc.Conn, func()) {
		a, _ := jsonrpc.Pipe()
		return a, func() {}
	}
	line := func() (jsonrpc.Conn, func()) {
		r, wOther := io.Pipe()
		rOther, w := io.Pipe()
		return jsonrpc.NewLineConn(r, w, func() error { r.Close(); return w.Close() }, 0), func() { wOther.Close(); rOther.Close() }
	}
	detached := func() (jsonrpc.Conn, func()) {
		r, wOther := io.Pipe()
		rOther, w := io.Pipe()
		return jsonrpc.NewLineConn(r, w, nil, 0), func() { wOther.Close(); rOther.Close() }
	}
	behind := map[string]int{"detached": 2}
	for name, open := range map[string]func() (jsonrpc.Conn, func()){"pipe": pipe, "line": line, "detached": detached} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails when a goroutine stays behind
				c, end := open()
				errs := make(chan error, 40)
				go func() {
					_, err := c.Read(nil)
					errs <- err
				}()
				frame := bytes.Repeat([]byte("x"), 100_000)
				for range 39 {
					go func() {
						for {
							if err := c.Write(frame); err != nil {
								errs <- err
								return
							}
						}
					}()
				}
				synctest.Wait()
				if len(errs) != 0 {
					t.Fatalf("before Close: %v", <-errs)
				}
				c.Close()
				c.Close()
				synctest.Wait()
				if n := len(errs); n != 40-behind[name] {
					t.Errorf("after Close %d of 40 have returned, want all but %d", n, behind[name])
				}
				end()
				synctest.Wait()
				for range 40 {
					select {
					case err := <-errs:
						if err != jsonrpc.ErrClosed {
							t.Errorf("error %v, want ErrClosed", err)
						}
					default:
						t.Fatal("a Read or Write is still blocked")
					}
				}
				if _, err := c.Read(nil); err != jsonrpc.ErrClosed {
					t.Errorf("Read after Close = %v", err)
				}
				if err := c.Write(frame); err != jsonrpc.ErrClosed {
					t.Errorf("Write after Close = %v", err)
				}
			})
		})
	}
}

// Frames longer than the read buffer arrive whole, and the frames after them are not lost; they
// are written whole too, without raw line breaks.
func TestLongFrames(t *testing.T) {
	for _, n := range []int{32<<10 - 1, 32 << 10, 64 << 10, 64<<10 + 1, 96<<10 + 1, 1 << 20} {
		long := strings.Repeat("x", n)
		in := "1\n" + long + "\n2\n" + long + "\r\n\n3"
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "in pieces": &chopped{strings.NewReader(in)}} {
			var out bytes.Buffer
			c := jsonrpc.NewLineConn(r, &out, noClose, 0)
			for _, want := range []string{"1", long, "2", long, "3"} {
				if f, err := c.Read(nil); string(f) != want || err != nil {
					t.Fatalf("%d bytes %s: Read = %.40q of %d, %v, want %.40q", n, name, f, len(f), err, want)
				}
				if err := c.Write([]byte("\r" + want + "\n")); err != nil {
					t.Fatal(err)
				}
				if err := c.Write([]byte(want)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Read(nil); err != io.EOF {
				t.Errorf("%d bytes %s: Read at the end = %v, want io.EOF", n, name, err)
			}
			want := "1\n1\n" + long + "\n" + long + "\n2\n2\n" + long + "\n" + long + "\n3\n3\n"
			if out.String() != want {
				t.Errorf("%d bytes %s: written %.40q of %d bytes, want %d", n, name, out.String(), out.Len(), len(want))
			}
		}
	}
}

// chopped reads in pieces of odd sizes.
type chopped struct{ r io.Reader }

func (c *chopped) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), 12_345)]) }

type stager interface {
	jsonrpc.Conn
	Ready() bool
	Stage(frame []byte, before func()) (held bool)
	Flush(ctx context.Context) (sent bool, err error)
}

// Frames staged during a write are sent together after it, by one Flush or the next Write, even
// if the caller of Flush stops waiting first.
func TestStageWhileBusy(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, send := range map[string]func(c stager) error{
		"flush":           func(c stager) error { _, err := c.Flush(context.Background()); return err },
		"flush, given up": func(c stager) error { _, err := c.Flush(gone); return err },
		"write":           func(c stager) error { return c.Write([]byte("e")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				var writes []string
				c := jsonrpc.NewLineConn(strings.NewReader(""), writerFunc(func(p []byte) (int, error) {
					writes = append(writes, string(p))
					return w.Write(p)
				}), w.Close, 0).(stager)
				go c.Write([]byte("a"))
				synctest.Wait()
				for _, frame := range []string{"b", "c", "d"} {
					told := false
					if !c.Stage([]byte(frame), func() { told = true }) || !told {
						t.Fatalf("Stage(%q) while a write is under way = false, or before was not called", frame)
					}
				}
				var err error
				go func() { err = send(c) }()
				synctest.Wait()
				go io.Copy(io.Discard, r)
				synctest.Wait()
				want := "b\nc\nd\n"
				if name == "write" {
					want += "e\n"
				}
				if !slices.Equal(writes, []string{"a\n", want}) {
					t.Errorf("writes %q, want %q after the first", writes, want)
				}
				if (err != nil) != (name == "flush, given up") {
					t.Errorf("error %v", err)
				}
				w.Close()
			})
		})
	}
}

// Staged frames are sent by Flush, or before the next frame that is written.
func TestStage(t *testing.T) {
	var writes []string
	w := writerFunc(func(p []byte) (int, error) { writes = append(writes, string(p)); return len(p), nil })
	c := jsonrpc.NewLineConn(strings.NewReader("1\n2\n3"), w, noClose, 0).(stager)
	if c.Ready() {
		t.Error("ready before anything was read")
	}
	for i, ready := range []bool{true, false} { // the last line has no end yet
		if f, err := c.Read(nil); err != nil || c.Ready() != ready {
			t.Errorf("Read %d = %q, %v, then ready is %t", i, f, err, c.Ready())
		}
	}
	flush := func() {
		if sent, err := c.Flush(t.Context()); !sent || err != nil {
			t.Fatal(sent, err)
		}
	}
	stage := func(frame string, want bool) {
		told := false
		if held := c.Stage([]byte(frame), func() { told = true }); held != want || told != want {
			t.Fatalf("Stage(%.9q) = %t; before was called: %t", frame, held, told)
		}
	}
	write := func(frame string) {
		if err := c.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	stage("a", true)
	stage("b\n", true)
	flush()
	flush()
	stage("c", true)
	write("d")
	long := strings.Repeat("x", 100_000)
	stage("e", true)
	write(long)
	stage("f", true)
	stage(long, false)
	write(long)
	want := []string{"a\nb\n", "c\nd\n", "e\n", long, "\n", "f\n", long, "\n"}
	if !slices.Equal(writes, want) {
		t.Errorf("writes %.200q, want %.200q", writes, want)
	}
}

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		for i := range 16 {
			if err := a.Write([]byte{byte('a' + i)}); err != nil {
				t.Fatal(err)
			}
		}
		var done error = errors.New("still blocked")
		go func() { done = a.Write([]byte("last")) }()
		synctest.Wait()
		if done == nil {
			t.Fatal("the 17th frame did not wait for the reader")
		}
		buf := make([]byte, 0, 8)
		if f, err := b.Read(buf); string(f) != "a" || err != nil || &f[0] != &buf[:1][0] {
			t.Fatalf("Read = %q, %v, want a in the buffer given", f, err)
		}
		synctest.Wait()
		if done != nil {
			t.Fatalf("after a Read the writer has %v", done)
		}
		a.Close()
		for i := range 16 { // what was written before Close is read
			want := string(byte('b' + i))
			if i == 15 {
				want = "last"
			}
			if f, err := b.Read(buf); string(f) != want || err != nil {
				t.Fatalf("Read = %q, %v, want %q", f, err, want)
			}
		}
		if _, err := b.Read(buf); err != io.EOF {
			t.Errorf("Read at the end = %v, want io.EOF", err)
		}
		if err := b.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write to the closed peer = %v, want io.ErrClosedPipe", err)
		}
	})
}

// A writer that is stuck because nobody reads is freed by the peer's Close too.
func TestPipePeerCloseUnblocksWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		err := make(chan error)
		go func() {
			for {
				if e := a.Write([]byte("x")); e != nil {
					err <- e
					return
				}
			}
		}()
		synctest.Wait()
		b.Close()
		if e := <-err; !errors.Is(e, io.ErrClosedPipe) {
			t.Errorf("Write = %v, want io.ErrClosedPipe", e)
		}
	})
}

func BenchmarkConn(b *testing.B) {
	line := func() (jsonrpc.Conn, jsonrpc.Conn) {
		r, w := io.Pipe()
		return jsonrpc.NewLineConn(strings.NewReader(""), w, w.Close, 0), jsonrpc.NewLineConn(r, io.Discard, r.Close, 0)
	}
	for _, bb := range []struct {
		name string
		open func() (jsonrpc.Conn, jsonrpc.Conn)
	}{{"wire=pipe", jsonrpc.Pipe}, {"wire=line", line}} {
		b.Run(bb.name, func(b *testing.B) {
			w, r := bb.open()
			frame := []byte(toolsCall)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			var wg sync.WaitGroup
			wg.Go(func() {
				var buf []byte
				for {
					f, err := r.Read(buf)
					if err != nil {
						return
					}
					buf = f
				}
			})
			for b.Loop() {
				if err := w.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
			w.Close()
			r.Close()
			wg.Wait()
		})
	}
}
