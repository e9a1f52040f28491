package gateway

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// audience is all of a caller that a list of a server may depend on.
type audience struct {
	principal  string
	credential any      // principal.Credential
	header     [32]byte // a digest of the caller's HTTP header, which the client of a connection may pass on
	says       string   // forward.CallerKey: a server of 2026-07-28 is told that
	hops       string   // who has forwarded the request: a server that leads back to them leaves that out
}

func audienceOf(ctx context.Context, call *mcp.Call, req *mcp.Request) audience {
	hops, _ := jsonx.Lookup(req.Param("_meta"), hop.Meta)
	a := audience{credential: principal.Credential(ctx), says: forward.CallerKey(ctx), hops: string(hops)}
	if call != nil {
		a.principal, a.header = call.Principal, headerDigest(call.Header)
	}
	return a
}

// to is the audience as a server sees it: an older one is told nothing of what single callers say.
func (a audience) to(c *conn) audience {
	if !c.modern && a.says != "" {
		a.says = "a call"
	}
	return a
}

// headerDigest tells HTTP headers apart by all that may say who is calling.
func headerDigest(h http.Header) (digest [32]byte) {
	var names []string
	for name := range h {
		if !sayNothing(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return digest
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		sum.Write(jsonx.AppendString(nil, name))
		for _, v := range h[name] {
			sum.Write(jsonx.AppendString(nil, v))
		}
	}
	return [32]byte(sum.Sum(nil))
}

// sayNothing tells whether a header, by its canonical name, says nothing of who is calling: it is of
// the message, of the way that it came, or of a trace.
func sayNothing(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type",
		"Date", "Dnt", "Host", "Last-Event-Id", "Origin", "Pragma", "Priority", "Referer", "Te", "Transfer-Encoding", "Upgrade", "User-Agent",
		"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-Ip",
		"Traceparent", "Tracestate", "X-Request-Id", "X-Correlation-Id", "X-Amzn-Trace-Id",
		"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions", hop.Header:
		return true
	}
	return strings.HasPrefix(name, "Mcp-") || strings.HasPrefix(name, "Sec-Fetch-") || strings.HasPrefix(name, "Sec-Ch-") || strings.HasPrefix(name, "X-B3-")
}
