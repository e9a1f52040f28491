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

// audience holds everything about a caller that a server's list may depend on. Callers with equal
// audiences get the same list.
type audience struct {
	principal  string
	credential any      // principal.Credential
	header     [32]byte // a digest of the caller's HTTP headers, which the client of a connection may pass on
	says       string   // forward.CallerKey, which a server that speaks 2026-07-28 can see
	hops       string   // gateways that have forwarded the request; a server omits what leads back to them
}

func audienceOf(ctx context.Context, call *mcp.Call, req *mcp.Request) audience {
	hops, _ := jsonx.Lookup(req.Param("_meta"), hop.Meta)
	a := audience{credential: principal.Credential(ctx), says: forward.CallerKey(ctx), hops: string(hops)}
	if call != nil {
		a.principal, a.header = call.Principal, headerDigest(call.Header)
	}
	return a
}

// to returns the audience as the server of c sees it. A server before 2026-07-28 does not see what
// single callers declare.
func (a audience) to(c *conn) audience {
	if !c.modern && a.says != "" {
		a.says = "a call"
	}
	return a
}

// headerDigest returns a digest of the HTTP headers that may identify the caller.
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

// sayNothing reports whether a header, given by its canonical name, says nothing about the caller:
// it concerns the message, its route or a trace.
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
