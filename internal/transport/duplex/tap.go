package duplex

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// tapped shows every frame to a tap, whether it is a message or not, and the end of
// the wire.
type tapped struct {
	jsonrpc.Conn
	tap  *engine.Tap
	over sync.Once
}

// newTapped returns conn itself if tap is nil. The argument opened is the side that opened the
// connection.
func newTapped(conn jsonrpc.Conn, tap *engine.Tap, opened trace.Dir) jsonrpc.Conn {
	if tap == nil {
		return conn
	}
	tap.Frame(trace.Frame{Kind: trace.KindOpen, Dir: opened})
	t := &tapped{Conn: conn, tap: tap}
	if w, ok := conn.(contextWriter); ok {
		return &tappedContext{t, w}
	}
	return t
}

func (t *tapped) Read(buf []byte) ([]byte, error) {
	frame, err := t.Conn.Read(buf)
	var big *jsonrpc.FrameTooLargeError
	switch {
	case err == nil:
		t.tap.Frame(trace.Frame{Dir: trace.In, Msg: frame})
	case errors.As(err, &big):
		t.tap.Frame(trace.Frame{Dir: trace.In, Raw: big.Head, Size: big.Limit + 1, Cut: big.Limit + 1 - len(big.Head), Note: big.Error()})
	case errors.Is(err, jsonrpc.ErrClosed): // by Close, which reports it
	case errors.Is(err, io.EOF):
		t.end(trace.In, "the peer closed the connection")
	default:
		t.end(trace.In, err.Error())
	}
	return frame, err
}

func (t *tapped) Write(frame []byte) error {
	t.tap.Frame(trace.Frame{Dir: trace.Out, Msg: frame})
	return t.Conn.Write(frame)
}

// contextWriter is a connection that can give up a Write, see [jsonrpc.Conn].
type contextWriter interface {
	WriteContext(ctx context.Context, frame []byte) (sent bool, err error)
}

// tappedContext is a tapped contextWriter.
type tappedContext struct {
	*tapped
	w contextWriter
}

func (t *tappedContext) WriteContext(ctx context.Context, frame []byte) (sent bool, err error) {
	t.tap.Frame(trace.Frame{Dir: trace.Out, Msg: frame})
	return t.w.WriteContext(ctx, frame)
}

func (t *tapped) Close() error {
	t.end(trace.Out, "")
	return t.Conn.Close()
}

// end reports the end of the wire, once.
func (t *tapped) end(by trace.Dir, why string) {
	t.over.Do(func() { t.tap.Frame(trace.Frame{Kind: trace.KindClose, Dir: by, Note: why}) })
}

// stagedWire holds frames back on a wire, and shows each to a tap.
type stagedWire struct {
	stager
	tap *engine.Tap // may be nil
}

// stagerOf returns conn as a stager, or nil if it cannot hold frames back.
func stagerOf(conn jsonrpc.Conn, tap *engine.Tap) *stagedWire {
	if s, ok := conn.(stager); ok {
		return &stagedWire{s, tap}
	}
	return nil
}

// stage holds a frame back if there is room. It is recorded now: its order is that of the wire.
func (w *stagedWire) stage(frame []byte, cause trace.Cause) (held bool) {
	if !w.tap.On() {
		return w.Stage(frame, nil)
	}
	return w.Stage(frame, func() { w.tap.Frame(trace.Frame{Dir: trace.Out, Msg: frame, For: cause}) })
}

// tieOf returns the raw value that assigns a notification to a request of its receiver: a
// progress token or a subscription id.
func tieOf(msg *jsonrpc.Message) (token, subscription json.RawMessage) {
	token, _ = msg.Param("progressToken")
	if meta, ok := msg.Param("_meta"); ok {
		subscription, _ = jsonx.Lookup(meta, engine.MetaSubscription)
	}
	return token, subscription
}
