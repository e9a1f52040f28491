package view

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// restScheme begins the URIs of rests: patchbay-rest:ID/OFFSET.
const restScheme = "patchbay-rest:"

const (
	restTime  = 10 * time.Minute
	restBytes = 64 << 20 // of all rests; the oldest are dropped
	ownBytes  = 32 << 20 // of those of one principal
	maxLinks  = 8        // of a result
)

// rest is a block of a result that was cut.
type rest struct {
	id        string
	principal string
	tool      string
	until     time.Time
	text      string
	block     json.RawMessage // of another kind than text
}

func (r *rest) size() int { return len(r.text) + len(r.block) + len(r.tool) }

// rests are what is left of results. The zero value is ready for use.
type rests struct {
	mu     sync.Mutex
	list   []*rest // the oldest first; guarded by mu
	expiry bool    // a timer will call expire; guarded by mu
}

// shorten returns a result of at most budget bytes of content, with links to the rest. A result that
// is not one of content, such as a task, is returned as it is.
func (k *rests) shorten(ctx context.Context, tool string, res mcp.Result, budget int) mcp.Result {
	raw := res.JSON()
	content, ok := jsonx.Lookup(raw, "content")
	if len(raw) <= budget || !ok {
		return res
	}
	owner := principal.From(ctx)
	left := budget
	out := []byte{'['}
	add := func(block []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, block...)
	}
	link := func(r *rest, from int, size int, what string) {
		k.keep(r)
		uri := restScheme + r.id + "/" + strconv.Itoa(from)
		block := jsonx.With(nil, []byte(`{"type":"resource_link"}`), "uri", jsonx.AppendString(nil, uri))
		block = jsonx.With(nil, block, "name", jsonx.AppendString(nil, what))
		block = jsonx.With(nil, block, "description", jsonx.AppendString(nil, fmt.Sprintf("%s, %d bytes; read this resource within 10 minutes", what, size)))
		add(block)
	}
	fresh := func() *rest {
		return &rest{id: rand.Text(), principal: owner, tool: tool, until: time.Now().Add(restTime)}
	}
	links := 0
	var others []byte // more blocks than there may be links, as JSON
	for block := range jsonx.Elements(content) {
		if len(block) <= left && links == 0 {
			left -= len(block)
			add(block)
			continue
		}
		if links++; links >= maxLinks {
			others = append(append(others, ','), block...)
			continue
		}
		r := fresh()
		if unquoted(lookup(block, "type")) != "text" {
			r.block = append(r.block, block...)
			link(r, 0, len(block), "a block of the result of "+tool)
			continue
		}
		r.text = unquoted(lookup(block, "text"))
		cut := cutAt(r.text, left)
		if left = 0; cut > 0 {
			add(jsonx.With(nil, block, "text", jsonx.AppendString(nil, r.text[:cut])))
		}
		link(r, cut, len(r.text)-cut, "the rest of the result of "+tool)
	}
	if others != nil {
		r := fresh()
		r.text = "[" + string(others[1:]) + "]"
		link(r, 0, len(r.text), "further blocks of the result of "+tool+", as JSON")
	}
	raw = jsonx.With(nil, raw, "content", append(out, ']'))
	if structured, ok := jsonx.Lookup(raw, "structuredContent"); ok && len(structured) > left {
		if len(out) == len("[]") { // nothing says it in words
			r := fresh()
			r.text, out = string(structured), out[:1]
			link(r, 0, len(structured), "the structured result of "+tool)
			raw = jsonx.With(nil, raw, "content", append(out, ']'))
		}
		raw = jsonx.Without(nil, raw, "structuredContent")
	}
	return mcp.RawResult(raw)
}

// cutAt returns a place at most n bytes into a text, between characters, and at the end of a line if
// there is one in the last quarter.
func cutAt(s string, n int) int {
	if n <= 0 {
		return 0
	}
	n = min(n, len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	if line := strings.LastIndexByte(s[:n], '\n') + 1; n < len(s) && line > n*3/4 {
		return line
	}
	return n
}

// keep keeps a rest, and drops old ones: first those of the same principal.
func (k *rests) keep(r *rest) {
	if more := len(r.text) - ownBytes; more > 0 {
		r.text = strings.Clone(r.text[:cutAt(r.text, ownBytes)]) + fmt.Sprintf("\n… %d bytes are left out", more)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, r)
	own, all, now := 0, 0, time.Now()
	kept := k.list[:0:0]
	for _, one := range slices.Backward(k.list) {
		size := one.size()
		if all+size > restBytes || one.principal == r.principal && own+size > ownBytes+len(r.tool)+100 || now.After(one.until) {
			continue
		}
		if all += size; one.principal == r.principal {
			own += size
		}
		kept = append(kept, one)
	}
	slices.Reverse(kept)
	k.list = kept
	k.expireLater()
}

// expireLater calls expire when the oldest rest expires. It is called with mu held.
func (k *rests) expireLater() {
	if !k.expiry && len(k.list) > 0 {
		k.expiry = true
		time.AfterFunc(time.Until(k.list[0].until), k.expire)
	}
}

// expire drops the rests whose time is over.
func (k *rests) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.list = slices.DeleteFunc(k.list, func(r *rest) bool { return !now.Before(r.until) })
	k.expiry = false
	k.expireLater()
}

// read answers resources/read of a rest: the next part of its text, with the URI of what follows.
func (k *rests) read(ctx context.Context, uri string, budget int) (mcp.Result, error) {
	id, at, _ := strings.Cut(strings.TrimPrefix(uri, restScheme), "/")
	from, err := strconv.Atoi(at)
	var r *rest
	k.mu.Lock()
	for _, one := range k.list {
		if one.id == id && one.principal == principal.From(ctx) && time.Now().Before(one.until) {
			r = one
		}
	}
	k.mu.Unlock()
	if r == nil || err != nil || from < 0 || from > len(r.text) {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "the rest of this result does not exist any more, or belongs to somebody else; call the tool again")
	}
	contents := mcp.ResourceContents{URI: uri, MIMEType: "text/plain"}
	if r.block == nil {
		part := r.text[from:]
		cut := cutAt(part, budget)
		if cut == 0 { // a budget below one character
			_, cut = utf8.DecodeRuneInString(part)
		}
		contents.Text = part[:cut]
		all := []mcp.ResourceContents{contents}
		if cut < len(part) {
			next := restScheme + r.id + "/" + strconv.Itoa(from+cut)
			all = append(all, mcp.ResourceContents{URI: next, MIMEType: "text/plain", Text: fmt.Sprintf("%d bytes follow; read %s", len(part)-cut, next)})
		}
		return &mcp.ReadResult{Contents: all}, nil
	}
	for _, member := range []json.RawMessage{r.block, lookup(r.block, "resource")} {
		mime := unquoted(lookup(member, "mimeType"))
		for _, name := range []string{"data", "blob"} {
			if data := unquoted(lookup(member, name)); data != "" {
				blob, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					break
				}
				contents.MIMEType, contents.Blob = mime, blob
				return &mcp.ReadResult{Contents: []mcp.ResourceContents{contents}}, nil
			}
		}
	}
	contents.MIMEType, contents.Text = "application/json", string(r.block)
	return &mcp.ReadResult{Contents: []mcp.ResourceContents{contents}}, nil
}
