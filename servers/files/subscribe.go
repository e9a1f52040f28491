package files

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/mcp"
)

// subscriptions is middleware that watches a file as long as a caller is subscribed to
// it. A resources/subscribe of older revisions arrives as subscriptions/listen too.
// Watching ends with the subscription, for any reason.
//
// Specification: 2026-07-28, basic/patterns/subscriptions.
func (s *server) subscriptions(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "subscriptions/listen" {
			return next.Handle(ctx, req)
		}
		uris := subscribed(req)
		if len(uris) == 0 {
			return next.Handle(ctx, req)
		}
		honoured := []string{}
		for _, uri := range uris {
			release, ok := s.watcher.add(uri)
			if !ok {
				continue
			}
			defer release()
			honoured = append(honoured, uri)
		}
		if len(honoured) < len(uris) {
			if call := mcp.CallFrom(ctx); call != nil && call.Revision.Sessions() {
				return nil, mcp.ResourceNotFound(uris[0]) // the request names one resource, and fails
			}
			var err error
			if req, err = only(req, honoured); err != nil { // the acknowledgement names the rest
				return nil, err
			}
		}
		return next.Handle(ctx, req)
	})
}

// subscribed returns the resources of a subscriptions/listen. The server refuses params
// that it cannot read.
func subscribed(req *mcp.Request) []string {
	var f struct {
		URIs []string `json:"resourceSubscriptions"`
	}
	if json.Unmarshal(req.Param("notifications"), &f) != nil {
		return nil
	}
	return f.URIs
}

// only returns a copy of req with these resources.
func only(req *mcp.Request, uris []string) (*mcp.Request, error) {
	var params, filter map[string]json.RawMessage
	if err := json.Unmarshal(req.Params, &params); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(params["notifications"], &filter); err != nil {
		return nil, err
	}
	set := func(in map[string]json.RawMessage, name string, v any) (err error) {
		in[name], err = json.Marshal(v)
		return err
	}
	if err := set(filter, "resourceSubscriptions", uris); err != nil {
		return nil, err
	}
	if err := set(params, "notifications", filter); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return &mcp.Request{Method: req.Method, Params: raw}, nil
}
