package mcp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// WithHeader sends headers with the HTTP requests of one call, instead of those of the same names in
// [Client.Header]: the request itself, and its repetitions with answers to questions. The polls of a task
// have none, and the result is neither taken from a cache nor kept in one. Over other transports there are no headers; middleware of the client and a Handler of
// [Client.Open] read them as [Call.Header]. The call fails before anything is sent if the transport needs
// the header for itself, such as Content-Type and all that begin with Mcp-.
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

// ownHeaders are the headers that the transport sets, besides those that begin with Mcp-.
var ownHeaders = []string{
	"Accept", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader refuses headers that a call must not set.
func checkHeader(h http.Header) error {
	for name := range h {
		if strings.HasPrefix(name, "Mcp-") || slices.Contains(ownHeaders, name) {
			return fmt.Errorf("WithHeader: %q is set by the transport; leave it out", clip(name))
		}
	}
	return nil
}
