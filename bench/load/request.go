package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Revision is the protocol version that requests are made in.
type Revision string

// Legacy is served in sessions, Modern request by request.
const (
	Legacy Revision = "2025-11-25"
	Modern Revision = "2026-07-28"
)

// Ids have nine digits, so that they can be replaced in place.
const (
	firstID = 100000000
	lastID  = 999999999
)

// A body is a JSON-RPC request.
type body struct {
	method string
	name   string // of the tool, if any
	bytes  []byte
	idAt   int // offset of the digits of the id
}

// newBody returns a request. members are the members of params.
func (r Revision) newBody(method, name string, members ...string) *body {
	if r == Modern {
		members = append(members, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`)
	}
	const head = `{"jsonrpc":"2.0","id":`
	return &body{method: method, name: name, idAt: len(head),
		bytes: fmt.Appendf(nil, `%s%d,"method":%q,"params":{%s}}`, head, firstID, method, strings.Join(members, ","))}
}

// open returns the first request of a session.
func (r Revision) open() *body {
	if r == Modern {
		return r.newBody("server/discover", "")
	}
	return r.newBody("initialize", "", fmt.Sprintf(`"protocolVersion":%q`, r), `"capabilities":{}`, `"clientInfo":{"name":"load","version":"1"}`)
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// call returns a call of a tool that echoes its message.
func (r Revision) call(tool, text string) *body {
	return r.newBody("tools/call", tool, fmt.Sprintf(`"name":%q`, tool), `"arguments":{"message":`+string(quote(text))+`}`)
}

// list returns a request for a page of tools.
func (r Revision) list(cursor string) *body {
	if cursor == "" {
		return r.newBody("tools/list", "")
	}
	return r.newBody("tools/list", "", `"cursor":`+string(quote(cursor)))
}

// quote returns s as JSON.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always can
	}
	return b
}

// putID writes the digits of id, which has nine, to b.
func putID(b []byte, id int) {
	for i := 8; i >= 0; i-- {
		b[i] = byte('0' + id%10)
		id /= 10
	}
}

// Text returns n bytes of text in which one byte of 44 has to be escaped.
func Text(n int) string {
	return strings.Repeat("the quick brown fox jumps over the lazy dog\n", n/44+1)[:n]
}
