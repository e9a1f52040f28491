package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnsupported says that a server does not support a measurement.
var ErrUnsupported = errors.New("not supported")

// answerID returns the id of a response. It uses the first member called "id", and
// searches the text of results last.
func answerID(frame []byte) (int, error) {
	raw := after(frame, `"id"`)
	id, n := 0, 0
	for n < len(raw) && n < 10 && raw[n] >= '0' && raw[n] <= '9' {
		id = id*10 + int(raw[n]-'0')
		n++
	}
	if n == 0 {
		return 0, fmt.Errorf("no id in answer %.200q", frame)
	}
	return id, nil
}

// after returns the bytes after the first `key:` in frame, or nil if there is none.
func after(frame []byte, key string) []byte {
	for {
		i := bytes.Index(frame, []byte(key))
		if i < 0 {
			return nil
		}
		frame = bytes.TrimLeft(frame[i+len(key):], " ")
		if len(frame) > 0 && frame[0] == ':' {
			return bytes.TrimLeft(frame[1:], " ")
		}
	}
}

// An echoCheck checks answers to a call that echoes a text.
type echoCheck struct {
	text   string
	quoted []byte // text as it was sent; most servers write it in the same form
}

func newEchoCheck(text string) *echoCheck { return &echoCheck{text, quote(text)} }

// check checks that frame has the text.
func (c *echoCheck) check(frame []byte) error {
	raw := after(frame, `"text"`) // {"type":"text", has no colon behind it
	if bytes.HasPrefix(raw, c.quoted) {
		return nil
	}
	return c.decode(frame)
}

// decode checks frame in full.
func (c *echoCheck) decode(frame []byte) error {
	r, err := result(frame)
	if err != nil {
		return err
	}
	var call struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(r, &call); err != nil {
		return fmt.Errorf("result %.200q: %w", r, err)
	}
	if call.IsError || len(call.Content) != 1 || call.Content[0].Type != "text" || call.Content[0].Text != c.text {
		return fmt.Errorf("result %.200q is not the echo of %d bytes", r, len(c.text))
	}
	return nil
}

// result decodes a response, returns its result, and checks that answerID reads it right.
func result(frame []byte) (json.RawMessage, error) {
	var m struct {
		ID     int
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(frame, &m); err != nil {
		return nil, fmt.Errorf("answer %.200q: %w", frame, err)
	}
	if m.Error != nil {
		err := fmt.Errorf("error %d: %.200q", m.Error.Code, m.Error.Message)
		if m.Error.Code == -32601 || m.Error.Code == -32022 { // method not found, unsupported protocol version
			err = errors.Join(ErrUnsupported, err)
		}
		return nil, err
	}
	if m.Result == nil {
		return nil, fmt.Errorf("answer %.200q has no result", frame)
	}
	if id, err := answerID(frame); err != nil || id != m.ID {
		return nil, fmt.Errorf("answer %.200q: read id %d, want %d", frame, id, m.ID)
	}
	return m.Result, nil
}

// maxAnswer bounds one answer.
const maxAnswer = 8 << 20
