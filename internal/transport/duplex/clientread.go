package duplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// read handles the messages from the server until the connection ends.
func (c *Client) read() {
	lim := jsonrpc.Limits{MaxDepth: c.opts.MaxDepth}
	var buf []byte
	for {
		// Receivers copy what they keep of a frame, so the buffer is reused, unless it is much
		// larger than its last frame.
		if cap(buf) > 64<<10 && len(buf) < cap(buf)/4 {
			buf = nil
		}
		frame, err := c.conn.Read(buf)
		c.frames.Add(1)
		if err != nil {
			if !c.passOver(err) {
				return
			}
			continue
		}
		buf = frame
		if jsonrpc.IsBatch(frame) {
			elements, err := jsonrpc.DecodeBatch(frame, lim)
			if err != nil {
				c.stray(err, frame)
				continue
			}
			for i := range elements {
				if elements[i].Err != nil {
					c.broken(elements[i].Err, frame)
					continue
				}
				c.message(&elements[i].Message)
			}
			continue
		}
		msg, err := jsonrpc.Decode(frame, lim)
		if err != nil {
			c.broken(err, frame)
			continue
		}
		c.message(&msg)
	}
}

// passOver handles an error of Read, and reports whether reading goes on.
func (c *Client) passOver(err error) bool {
	var big *jsonrpc.FrameTooLargeError
	switch {
	case errors.As(err, &big):
		c.opts.Logger.Warn("message of the server is too large", "err", err)
		c.tooLarge(big)
		return true
	case errors.Is(err, io.EOF):
		err = errors.New("the server closed the connection")
	}
	c.end(err)
	return false
}

// broken handles a frame that is not a message. A broken answer fails its call; anything else,
// such as a stray print of the server, is logged and skipped.
func (c *Client) broken(err error, frame []byte) {
	var bad *jsonrpc.DecodeError
	if errors.As(err, &bad) && !bad.ID.IsZero() {
		c.mu.Lock()
		cl := c.calls[bad.ID]
		if cl != nil {
			c.answer(cl, nil, engine.Unusable("the server's answer is not a valid message: %s", bad.Err.Message))
		}
		c.mu.Unlock()
		if cl != nil {
			return
		}
	}
	c.stray(err, frame)
}

// stray logs a frame that is not a message. A program that prints for people prints many lines:
// the first is a warning, the others are debug messages.
func (c *Client) stray(err error, frame []byte) {
	line, known := text.Short(frame), c.strayed
	if c.opts.Stray != nil {
		line, known = c.opts.Stray(frame)
	}
	level := slog.LevelDebug
	if !known {
		c.strayed, level = true, slog.LevelWarn
	}
	c.opts.Logger.Log(context.Background(), level, "the server sent a line that is not an MCP message; "+stray.Advice, "err", err, "line", line)
}

// tooLarge fails the call whose answer was skipped, if it is known from the beginning of the
// answer or is the only one.
func (c *Client) tooLarge(big *jsonrpc.FrameTooLargeError) {
	if _, asks := jsonx.Lookup(big.Head, "method"); asks {
		return
	}
	var bad *jsonrpc.DecodeError
	_, err := jsonrpc.Decode(big.Head, jsonrpc.Limits{})
	c.mu.Lock()
	defer c.mu.Unlock()
	var cl *call
	if errors.As(err, &bad) && !bad.ID.IsZero() {
		cl = c.calls[bad.ID]
	} else {
		cl = engine.Only(c.speaking(), func(*call) bool { return false })
	}
	if cl != nil {
		c.answer(cl, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the server's answer is too large: " + big.Error()})
	}
}

// message handles one message, whose bytes are valid until it returns.
func (c *Client) message(msg *jsonrpc.Message) {
	switch msg.Kind() {
	case jsonrpc.KindResponse:
		c.response(msg)
	case jsonrpc.KindNotification:
		c.notification(msg)
	default:
		c.question(msg)
	}
}

func (c *Client) response(msg *jsonrpc.Message) {
	var err error
	if e := msg.Error; e != nil {
		e.Data = bytes.Clone(e.Data)
		err = e
	}
	result := bytes.Clone(msg.Result)
	c.mu.Lock()
	cl := c.calls[msg.ID]
	if cl != nil {
		c.answer(cl, result, err)
	}
	c.mu.Unlock()
	if cl == nil && !c.takeLate(msg, result) {
		c.opts.Logger.Debug("response to an unknown request", "id", msg.ID.String())
	}
}

func (c *Client) notification(msg *jsonrpc.Message) {
	if msg.Method == revision.NoteCancelled {
		raw, _ := msg.Param("requestId")
		if id, err := jsonrpc.ParseID(raw); err == nil {
			c.mu.Lock()
			stop := c.questions[id]
			c.mu.Unlock()
			if stop != nil {
				stop()
				return
			}
		}
	}
	params := bytes.Clone(msg.Params)
	c.mu.Lock()
	cl := c.owner(msg)
	if cl != nil {
		cl.tell(engine.Note{Method: msg.Method, Params: params})
	}
	c.mu.Unlock()
	if cl == nil {
		c.opts.Inbox.Note(msg.Method, params)
	}
}

// noteTime bounds how long a question waits for the notifications before it, whose receiver may wait for the question.
const noteTime = time.Second

// wait waits until the notifications that came before a question are delivered, since the question may suspend the
// call that they belong to.
func wait(ctx context.Context, before []<-chan struct{}) {
	if len(before) == 0 {
		return
	}
	late := time.NewTimer(noteTime)
	defer late.Stop()
	for _, told := range before {
		select {
		case <-told:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// owner finds the call that a notification belongs to: by progress token or subscription id; a
// log message belongs to the only call in flight that asked for logs. Mu is held.
func (c *Client) owner(msg *jsonrpc.Message) *call {
	token, subscription := tieOf(msg)
	switch {
	case subscription != nil:
		if id, err := jsonrpc.ParseID(subscription); err == nil {
			return c.calls[id]
		}
	case token != nil && msg.Method == revision.NoteProgress:
		for _, cl := range c.calls {
			if string(cl.out.Token) == string(token) {
				return cl
			}
		}
	case msg.Method == revision.NoteMessage:
		return engine.Only(c.speaking(), func(cl *call) bool { return cl.out.Logs })
	}
	return nil
}

// speaking yields the calls in flight except subscriptions, which have no log messages
// (LOG-26-005). Mu is held.
func (c *Client) speaking() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, cl := range c.calls {
			if !cl.stands() && !yield(cl) {
				return
			}
		}
	}
}

// question lets the inbox of the wire answer a request from the server: on a pipe it does not name
// the call it belongs to. A modern server must not send requests; it gets no answer (STDIO-26-005).
func (c *Client) question(msg *jsonrpc.Message) {
	if c.modern.Load() {
		c.opts.Logger.Warn("request of a server of the modern era ignored", "method", msg.Method)
		return
	}
	if msg.Method == revision.MethodPing {
		c.reply(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{}`)))
		return
	}
	c.mu.Lock()
	busy := len(c.questions) >= maxQuestions
	_, twice := c.questions[msg.ID]
	ctx, stop := context.WithCancel(c.ctx)
	var before []<-chan struct{}
	if !busy && !twice {
		c.questions[msg.ID] = stop
		for _, cl := range c.calls {
			if told := cl.pending(); told != nil {
				before = append(before, told)
			}
		}
	}
	c.mu.Unlock()
	if busy || twice {
		stop()
		err := fmt.Errorf("%d requests of the server are in progress, which is the limit; wait for an answer", maxQuestions)
		if twice {
			err = fmt.Errorf("a request with the id %.100s is in progress; use another", msg.ID.String())
		}
		c.reply(engine.AnswerTo(msg.ID, nil, err))
		return
	}
	id, method, params := msg.ID, msg.Method, bytes.Clone(msg.Params)
	c.wg.Go(func() {
		defer stop()
		var result json.RawMessage
		err := usercode.Failed()
		defer func() { // a user's function may end the goroutine
			c.mu.Lock()
			delete(c.questions, id)
			c.mu.Unlock()
			if ctx.Err() == nil {
				c.send(engine.AnswerTo(id, result, err))
			}
		}()
		wait(ctx, before)
		result, err = c.opts.Inbox.Question(ctx, method, params)
	})
}

// reply writes a response without blocking the reading goroutine, on which it is called.
// Responses are dropped while maxReplies are waiting.
func (c *Client) reply(frame []byte) {
	select {
	case c.replying <- struct{}{}:
	default:
		c.opts.Logger.Warn("answer dropped: too many are waiting for the server", "waiting", maxReplies)
		return
	}
	c.wg.Go(func() {
		defer func() { <-c.replying }()
		c.send(frame)
	})
}

// send writes a response.
func (c *Client) send(frame []byte) {
	switch err := c.conn.Write(frame); {
	case err == nil:
	case refused(err):
		c.opts.Logger.Warn("answer to a question not delivered", "err", err)
	default:
		c.end(err)
	}
}
