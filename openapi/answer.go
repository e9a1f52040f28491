package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/zone"
	"github.com/patchbay-dev/patchbay/mcp"
)

// acceptHeader names the media types of good answers, JSON first.
func (o *Operation) acceptHeader() string {
	for _, a := range o.accept {
		if isJSON(a) && httpguts.ValidHeaderFieldValue(a) {
			return a + ", */*;q=0.5"
		}
	}
	if len(o.accept) > 0 && httpguts.ValidHeaderFieldValue(o.accept[0]) {
		return o.accept[0] + ", */*;q=0.5"
	}
	return "application/json, */*;q=0.5"
}

// call sends the request of an operation and returns its answer.
func (a *api) call(ctx context.Context, o *Operation, args []byte) (*mcp.ToolResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.options.Timeout, fmt.Errorf("the API has not answered within %v", a.options.Timeout))
	defer cancel()
	x := &exchange{api: a}
	req, err := x.request(ctx, o, args)
	if err != nil {
		return nil, err
	}
	client := a.client
	if !a.owns(o) {
		client = a.others
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, x.explain(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusSwitchingProtocols { // the body is the connection, which does not end with ctx
		return nil, errors.New("the API switches to another protocol, which nobody has asked for")
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, a.options.MaxBytes+1))
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the answer of the API, %s, broke off after %d bytes: %s", statusOf(res), len(data), x.hide(oneLine(err.Error(), 200)))
	}
	if err != nil {
		return nil, x.explain(ctx, err)
	}
	if location := res.Header.Get("Location"); res.StatusCode >= 300 && res.StatusCode < 400 && location != "" {
		return nil, fmt.Errorf("the API redirects to %s, which was not followed: only a GET is, and only to the same host", quote(x.hide(location)))
	}
	return x.result(o, req, res, data), nil
}

// explain turns an error of the HTTP client into one with the next step.
func (x *exchange) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r, ok := zone.IsRefusal(err); ok {
		return fmt.Errorf("%v; this server sends requests there only if it is started with that address as its base", r)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return fmt.Errorf("there is no host %q; check the base of this server", text.Short(dns.Name))
	}
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "dial" {
		return fmt.Errorf("the API at %s cannot be reached: %s", x.base.Host, oneLine(refused.Err.Error(), 200))
	}
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return fmt.Errorf("the API did not answer: %s", x.hide(oneLine(err.Error(), 1000)))
}

// result makes the result of a tool of an answer.
func (x *exchange) result(o *Operation, req *http.Request, res *http.Response, data []byte) *mcp.ToolResult {
	cut := int64(len(data)) > x.options.MaxBytes
	if cut {
		data = data[:x.options.MaxBytes]
	}
	mediaType, _, _ := mime.ParseMediaType(x.hide(res.Header.Get("Content-Type")))
	out := &mcp.ToolResult{IsError: res.StatusCode >= 400}
	say := func(format string, args ...any) {
		out.Content = append(out.Content, mcp.Text(fmt.Sprintf(format, args...)))
	}
	encoding := res.Header.Get("Content-Encoding") // what the transport has decoded is without it
	if strings.EqualFold(encoding, "identity") {
		encoding = ""
	}
	isText := encoding == "" && (isJSON(mediaType) || formOf(mediaType) == textBody || mediaType == "" || utf8.Valid(data))
	switch {
	case out.IsError:
		say("The API answered %s.", statusOf(res))
		if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
			if why := x.missing(req.Context(), o); why != "" {
				say("%s", why)
			}
		}
		if after := res.Header.Get("Retry-After"); after != "" {
			say("It asks to wait: Retry-After: %s.", oneLine(x.hide(after), 100))
		}
		if isText && len(data) > 0 {
			say("%s", text.Clip(strings.ToValidUTF8(x.hide(string(data)), "\ufffd"), maxErrorText))
		}
		return out
	case len(data) == 0:
		say("The API answered %s, without content.", statusOf(res))
		if location := res.Header.Get("Location"); location != "" {
			say("Location: %s", oneLine(x.hide(location), 2000))
		}
		return out
	case encoding != "":
		out.IsError = true
		say("The API answered in the encoding %s, which this server has not asked for and cannot read.", quote(x.hide(encoding)))
		return out
	case x.onlyJSON(o) && !isJSON(mediaType) && jsonx.Valid(data, maxDepth*8) != nil && !cut:
		out.IsError = true
		say("The API answered %s where its document has JSON. The beginning of the answer follows.", quote(mediaType))
		if isText {
			say("%s", text.Clip(strings.ToValidUTF8(x.hide(string(data)), "\ufffd"), 1000))
		}
		return out
	case !isText:
		out.Content = x.binary(mediaType, []byte(x.hide(string(data))), cut)
		return out
	}
	say("%s", strings.ToValidUTF8(x.hide(string(data)), "\ufffd"))
	if cut {
		say("The answer is longer; only its first %d bytes are here. Ask for less, by a filter or a smaller page, if the API can do that.", len(data))
	}
	if next := x.next(o, req, res.Header); next != "" {
		say("There are more; call the tool again with %s.", next)
	}
	return out
}

// statusOf returns the status of an answer as "404 Not Found".
func statusOf(res *http.Response) string {
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode)))
}

// maxErrorText bounds the text of an answer that is an error, in bytes.
const maxErrorText = 8 << 10

// onlyJSON reports whether the document has JSON and nothing else as the answer.
func (a *api) onlyJSON(o *Operation) bool {
	return len(o.accept) > 0 && !slices.ContainsFunc(o.accept, func(t string) bool { return !isJSON(t) })
}

// binary is content that is not text.
func (a *api) binary(mediaType string, data []byte, cut bool) []mcp.Content {
	switch {
	case cut:
		return []mcp.Content{mcp.Text(fmt.Sprintf("The answer is %s of more than %d bytes, which is too long for a result.", quote(mediaType), len(data)))}
	case strings.HasPrefix(mediaType, "image/"):
		return []mcp.Content{mcp.ImageContent{Data: data, MIMEType: mediaType}}
	case strings.HasPrefix(mediaType, "audio/"):
		return []mcp.Content{mcp.AudioContent{Data: data, MIMEType: mediaType}}
	}
	return []mcp.Content{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "openapi:answer", MIMEType: mediaType, Blob: data}}}
}

// next returns the arguments of the next page, from a link with rel="next" to the same path (RFC 8288): those that
// differ.
func (x *exchange) next(o *Operation, req *http.Request, h http.Header) string {
	for _, link := range strings.Split(strings.Join(h.Values("Link"), ","), ",") {
		target, params, _ := strings.Cut(link, ">")
		target = strings.TrimLeft(target, " <")
		if !strings.Contains(strings.ReplaceAll(params, `"`, ""), "rel=next") {
			continue
		}
		u, err := req.URL.Parse(target)
		if err != nil || u.Host != req.URL.Host || u.Path != req.URL.Path {
			continue
		}
		old, fresh := req.URL.Query(), u.Query()
		var out []string
		for _, name := range slices.Sorted(maps.Keys(fresh)) {
			for _, p := range o.parameters {
				if p.in == "query" && p.name == name && !slices.Equal(old[name], fresh[name]) {
					out = append(out, p.argument+"="+string(jsonx.AppendString(nil, text.Clip(x.hide(fresh.Get(name)), 1000))))
				}
			}
		}
		return strings.Join(out, " and ")
	}
	return ""
}

// hide removes credentials from text of the API, which may repeat a request.
func (x *exchange) hide(s string) string {
	x.mu.Lock()
	secrets := slices.Concat(x.secrets, x.own)
	x.mu.Unlock()
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be the beginning of another
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "[credential]")
	}
	return s
}

// read returns the answer of an operation as the contents of a resource.
func (a *api) read(ctx context.Context, o *Operation) (*mcp.ReadResult, error) {
	res, err := a.call(ctx, o, []byte("{}"))
	if err != nil {
		return nil, err
	}
	if res.IsError {
		return nil, errors.New(res.Text())
	}
	out := &mcp.ReadResult{}
	for _, c := range res.Content {
		one := mcp.ResourceContents{URI: "openapi:" + o.path}
		switch c := c.(type) {
		case mcp.TextContent:
			one.Text = c.Text
			if jsonx.Valid([]byte(c.Text), maxDepth*8) == nil {
				one.MIMEType = "application/json"
			}
		case mcp.ImageContent:
			one.Blob, one.MIMEType = c.Data, c.MIMEType
		case mcp.AudioContent:
			one.Blob, one.MIMEType = c.Data, c.MIMEType
		case mcp.EmbeddedResource:
			one.Blob, one.MIMEType = c.Resource.Blob, c.Resource.MIMEType
		}
		out.Contents = append(out.Contents, one)
	}
	return out, nil
}
