package mcp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// WithHeader adds headers to the HTTP requests of one call, in place of headers of the same names
// in [Client.Header]: to the request itself and to its retries with answers to questions, but not
// to polls of a task. The result is neither taken from a cache nor cached. Other transports do not
// send them; middleware of the client and a Handler of [Client.Open] read them as [Call.Header],
// which there holds only these headers and not those of [Client.Header].
// The call fails before anything is sent if the transport sets the header itself, such as
// Content-Type and all that begin with Mcp-.
func WithHeader(h http.Header) CallOption {
	return func(o *callOptions) {
		if o.header == nil {
			o.header = http.Header{}
		}
		for name, values := range h {
			o.header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
}

// ownHeaders are the headers that the transport sets, other than those that begin with Mcp-.
var ownHeaders = []string{
	"Accept", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader refuses headers that a call must not set.
func checkHeader(h http.Header) error {
	for name := range h {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains(ownHeaders, name) {
			return fmt.Errorf("WithHeader: %q is set by the transport; leave it out", text.Short(name))
		}
	}
	return nil
}
