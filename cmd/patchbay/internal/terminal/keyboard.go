package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Keyboard reads lines from a terminal. A read from a terminal cannot be interrupted: when its
// caller gives up, it goes on in a goroutine of its own, and its input becomes the start of the
// next line.
type Keyboard struct {
	in   io.Reader
	tty  *os.File      // the input, or nil if it is not a terminal
	news chan struct{} // capacity 1: a read has ended

	mu      sync.Mutex
	reading bool   // a read is in progress; guarded by mu
	typed   []byte // input that was read and not returned yet; guarded by mu
	err     error  // of the last read, until it is returned; guarded by mu
}

// NewKeyboard returns a keyboard that reads lines from r.
func NewKeyboard(r io.Reader) *Keyboard {
	k := &Keyboard{in: r, news: make(chan struct{}, 1)}
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		k.tty = f
	}
	return k
}

// Line waits for a line. At the end of input (ctrl-D) it returns io.EOF.
func (k *Keyboard) Line(ctx context.Context) (string, error) {
	for {
		if text, err, ok := k.take(); ok {
			return text, err
		}
		select {
		case <-k.news:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// take returns a line that was read. If there is none, it starts a read.
func (k *Keyboard) take() (text string, err error, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch i := bytes.IndexByte(k.typed, '\n'); {
	case i >= 0:
		text, k.typed = string(k.typed[:i]), k.typed[i+1:]
	case k.err != nil:
		text, err = string(k.typed), k.err
		k.typed, k.err = nil, nil
		if text != "" && errors.Is(err, io.EOF) {
			err = nil
		}
	default:
		k.listenLocked()
		return "", nil, false
	}
	return strings.TrimRight(text, "\r"), err, true
}

// ended reports whether the input has ended, which Line returns.
func (k *Keyboard) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err != nil
}

// listen starts a read unless one is in progress.
func (k *Keyboard) listen() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listenLocked()
}

func (k *Keyboard) listenLocked() {
	if !k.reading {
		k.reading = true
		go k.read()
	}
}

func (k *Keyboard) read() {
	buf := make([]byte, 4<<10)
	n, err := k.in.Read(buf)
	k.mu.Lock()
	k.typed, k.err, k.reading = append(k.typed, buf[:n]...), err, false
	k.mu.Unlock()
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// Drop discards the input so far of a terminal, an unfinished line included, because it was not
// typed for the question that is on the screen now. (On a Windows console, the start of a line that
// a read in progress has taken stays.)
func (k *Keyboard) Drop() {
	if k.tty == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	flushInput(k.tty)
	k.typed, k.err = nil, nil
}

const (
	readTime  = time.Second            // minimum time to read a question about what a file starts
	quietTime = 500 * time.Millisecond // without input before such a question; a paste does not pause so long
	busyTime  = 10 * time.Second       // maximum time to wait for a pause; then the question is not asked
)

// ErrNeverQuiet reports that the input did not pause.
var ErrNeverQuiet = errors.New("the input never pauses")

// Settle gives a person at a terminal time to read the screen. It drops input during that time, and
// then until the input pauses, because a long paste comes in pieces. It reports whether lines were
// dropped. Input that does not pause is [ErrNeverQuiet].
func (k *Keyboard) Settle(ctx context.Context) (dropped bool, err error) {
	if k.tty == nil {
		return false, nil
	}
	start := time.Now()
	quiet := time.NewTimer(readTime)
	defer quiet.Stop()
	for !k.ended() {
		k.Drop()
		k.listen()
		select {
		case <-quiet.C:
			k.Drop()
			return dropped, nil
		case <-k.news:
			dropped = true
			quiet.Reset(max(quietTime, readTime-time.Since(start)))
		case <-ctx.Done():
			return dropped, context.Cause(ctx)
		}
		if time.Since(start) > busyTime {
			return dropped, ErrNeverQuiet
		}
	}
	return dropped, nil
}

// Hidden waits for a line. A terminal does not show it while it is typed.
func (k *Keyboard) Hidden(ctx context.Context) (string, error) {
	if k.tty == nil {
		return k.Line(ctx)
	}
	fd := int(k.tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // a read from a terminal cannot be interrupted: after ctrl-C it lives as long as the program
		text, err := term.ReadPassword(fd)
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return string(r.text), r.err
	case <-ctx.Done():
		term.Restore(fd, before) // show typed text again
		return "", context.Cause(ctx)
	}
}
