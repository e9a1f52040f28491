// Package bare makes tool calls without a library: a lower bound on the cost of any library.
// It searches the bytes of a request for the members it needs, and copies them. It does not
// check the JSON, the headers or the arguments; it has one tool and no limits, cannot be
// cancelled, and a panic would end it.
package bare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Server answers requests. It may be used by several goroutines at once.
type Server struct {
	tools []byte // the result of tools/list
}

// NewServer returns a server with n tools: "echo", and others with schemas of about 1 KiB.
func NewServer(tools int) *Server {
	const tool = `{"name":%q,"description":"Echoes its message.","inputSchema":{"type":"object",` +
		`"properties":{"message":{"type":"string","description":%q}},"required":["message"]}}`
	list := fmt.Appendf([]byte(`{"tools":[`), tool, "echo", "the text to echo")
	for i := 1; i < tools; i++ {
		list = fmt.Appendf(append(list, ','), tool, fmt.Sprintf("tool%04d", i), strings.Repeat("x", 880))
	}
	return &Server{append(list, "]}"...)}
}

// Answer appends the response to a request to dst, nothing if it is a notification.
func (s *Server) Answer(dst, request []byte) []byte {
	id := Member(request, `"id":`)
	if id == nil {
		return dst
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	switch method := Member(request, `"method":`); string(method) {
	case `"tools/call"`:
		dst = append(dst, `,"result":{"content":[{"type":"text","text":`...)
		dst = append(dst, Member(request, `"message":`)...)
		if bytes.Contains(request, revisionKey) {
			return append(dst, `}],"resultType":"complete"}}`...)
		}
		return append(dst, `}]}}`...)
	case `"tools/list"`:
		dst = append(dst, `,"result":`...)
		dst = append(dst, s.tools...)
		return append(dst, '}')
	case `"initialize"`:
		return append(dst, `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}}`...)
	case `"server/discover"`:
		return append(dst, `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},`+
			`"ttlMs":0,"cacheScope":"private","serverInfo":{"name":"bare","version":"1"}}}`...)
	case `"ping"`:
		return append(dst, `,"result":{}}`...)
	}
	return append(dst, `,"error":{"code":-32601,"message":"method not found"}}`...)
}

var revisionKey = []byte(`/protocolVersion":"2026-07-28"`)

// Member returns the number or the string, with its quotes, behind the first key in b, or nil
// if there is none. The key includes its colon.
func Member(b []byte, key string) []byte {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil
	}
	b = bytes.TrimLeft(b[i+len(key):], " ")
	if len(b) == 0 || b[0] != '"' {
		return b[:max(0, bytes.IndexAny(b, ",}"))]
	}
	end := 1
	for {
		n := bytes.IndexByte(b[end:], '"')
		if n < 0 {
			return nil
		}
		end += n + 1
		slashes := 0
		for b[end-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return b[:end]
		}
	}
}

// AppendCall appends a request that calls the echo tool.
func AppendCall(dst []byte, id int64, text string) []byte {
	dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":`, id)
	quoted, _ := json.Marshal(text) // a string never fails
	dst = append(dst, quoted...)
	return append(dst, `}}}`...)
}

// Text returns the text that an answer echoes.
func Text(answer []byte) (string, error) {
	raw := Member(answer, `"text":`)
	if raw == nil {
		return "", fmt.Errorf("no text in %.200q", answer)
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}
