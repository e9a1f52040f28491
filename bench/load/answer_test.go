package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestEchoCheck(t *testing.T) {
	const text = "two\nlines \"quoted\""
	const echo = `{"jsonrpc":"2.0","id":100000001,"result":{"content":[{"type":"text","text":"two\nlines \"quoted\""}]}}`
	tests := []struct {
		name, frame string
		ok          bool
	}{
		{"as sent", echo, true},
		{"id last", `{"result":{"content":[{"type":"text","text":"two\nlines \"quoted\""}]},"id":100000001,"jsonrpc":"2.0"}`, true},
		{"spaces", `{"id" : 100000001, "result": {"content": [ {"text" : "two\nlines \"quoted\"", "type": "text"} ]}}`, true},
		{"escaped otherwise", strings.ReplaceAll(echo, `\n`, `\u000a`), true},
		{"another text", strings.ReplaceAll(echo, "two", "too"), false},
		{"longer", strings.ReplaceAll(echo, `quoted\"`, `quoted\"x`), false},
		{"a tool error", `{"id":100000001,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`, false},
		{"an error", `{"id":100000001,"error":{"code":-32603,"message":"no"}}`, false},
		{"nothing", `{"id":100000001}`, false},
		{"no JSON", `{"id":100000001,`, false},
		{"empty", ``, false},
	}
	c := newEchoCheck(text)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := c.check([]byte(tt.frame)); (err == nil) != tt.ok {
				t.Errorf("check = %v", err)
			}
			if err := c.decode([]byte(tt.frame)); (err == nil) != tt.ok {
				t.Errorf("decode = %v", err)
			}
		})
	}
}

func TestAnswerID(t *testing.T) {
	tests := []struct {
		frame string
		want  int // 0: an error
	}{
		{`{"jsonrpc":"2.0","id":123456789,"result":{}}`, 123456789},
		{`{"result":{"_meta":{"x":"id"}},"id": 7}`, 7},
		{`{"method":"notifications/message","params":{}}`, 0},
		{`{"id":"7"}`, 0},
		{`{"id":`, 0},
		{`"id"`, 0},
	}
	for _, tt := range tests {
		if id, err := answerID([]byte(tt.frame)); id != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("answerID(%s) = %d, %v, want %d", tt.frame, id, err, tt.want)
		}
	}
}

func TestResultTellsWhatIsUnsupported(t *testing.T) {
	for code, want := range map[int]bool{-32601: true, -32022: true, -32602: false} {
		_, err := result(fmt.Appendf(nil, `{"id":1,"error":{"code":%d,"message":"no"}}`, code))
		if err == nil || errors.Is(err, ErrUnsupported) != want {
			t.Errorf("error %d: %v, unsupported: %v", code, err, want)
		}
	}
}

// The full check accepts all answers that the cheap one accepts.
func FuzzEchoCheck(f *testing.F) {
	f.Add(`a\u000ab`, "a\nb")
	f.Add(`x","text":"y`, "y")
	f.Add(``, "")
	f.Fuzz(func(t *testing.T, raw, text string) {
		frame := []byte(`{"id":1,"result":{"content":[{"type":"text","text":"` + raw + `"}]}}`)
		c := newEchoCheck(text)
		_, resultErr := result(frame)
		if c.check(frame) == nil && resultErr == nil {
			if err := c.decode(frame); err != nil && !strings.Contains(raw, `"`) {
				t.Errorf("check takes %s for the echo of %q, and decode says %v", frame, text, err)
			}
		}
	})
}
