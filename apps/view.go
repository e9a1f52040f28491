package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// View is a user interface: an HTML document, and its needs of a host.
type View struct {
	URI         string // "ui://" and a name, such as "ui://weather/forecast"
	Name        string
	Title       string
	Description string

	// HTML is the document. It must begin with <!DOCTYPE html>; the rest is not checked.
	HTML string

	// Render returns the document, instead of HTML, each time that it is read.
	Render func(ctx context.Context) (string, error)

	Needs
}

// Needs are the requirements of a view. With the zero value a view can connect to nothing. A host
// may grant less.
type Needs struct {
	// CSP lists the origins that the view uses. Nil means none.
	CSP *CSP `json:"csp,omitempty"`

	// Permissions are the browser features that the view requests. A view must work without them.
	Permissions *Permissions `json:"permissions,omitempty"`

	// Domain is an origin of the view's own, in the form that the host documents. Empty means
	// that the host chooses.
	Domain string `json:"domain,omitempty"`

	// PrefersBorder requests a border and background, or none. Nil means that the host decides.
	PrefersBorder *bool `json:"prefersBorder,omitempty"`
}

// CSP lists the origins that a view uses, such as "https://api.example.com" or
// "https://*.example.com". An empty list allows none.
type CSP struct {
	Connect  []string `json:"connectDomains,omitempty"`  // fetch, XMLHttpRequest, WebSocket
	Resource []string `json:"resourceDomains,omitempty"` // scripts, styles, pictures, fonts, media
	Frame    []string `json:"frameDomains,omitempty"`    // frames within the view
	BaseURI  []string `json:"baseUriDomains,omitempty"`  // of the document; empty: its own
}

// Permissions are features of a browser.
type Permissions struct {
	Camera, Microphone, Geolocation, ClipboardWrite bool
}

// permissions are Permissions on the wire: each is an object.
type permissions struct {
	Camera         *struct{} `json:"camera,omitzero"`
	Microphone     *struct{} `json:"microphone,omitzero"`
	Geolocation    *struct{} `json:"geolocation,omitzero"`
	ClipboardWrite *struct{} `json:"clipboardWrite,omitzero"`
}

// MarshalJSON writes the form of the extension.
func (p Permissions) MarshalJSON() ([]byte, error) {
	asked := func(on bool) *struct{} {
		if on {
			return new(struct{})
		}
		return nil
	}
	return jsonx.Marshal(permissions{asked(p.Camera), asked(p.Microphone), asked(p.Geolocation), asked(p.ClipboardWrite)})
}

// UnmarshalJSON reads the form of the extension.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	var w permissions
	if err := jsonx.Unmarshal(data, &w); err != nil {
		return err
	}
	*p = Permissions{w.Camera != nil, w.Microphone != nil, w.Geolocation != nil, w.ClipboardWrite != nil}
	return nil
}

// AddView adds a view, or replaces the one with its URI. It is a resource of the server.
//
// AddView panics if the view is invalid, a mistake of the program that no input can cause. A
// document made by Render is checked when it is read.
func (a *Apps) AddView(v View) {
	if err := v.check(); err != nil {
		panic(fmt.Errorf("apps: AddView %q: %w", v.URI, err))
	}
	var meta mcp.Meta
	if raw := encode(v.Needs); string(raw) != "{}" {
		meta = mcp.Meta{metaKey: raw}
	}
	render := v.Render
	if render == nil {
		render = func(context.Context) (string, error) { return v.HTML, nil }
	}
	a.mu.Lock()
	a.views[v.URI] = true
	a.mu.Unlock()
	mcp.AddResource(a.srv, mcp.Resource{
		URI: v.URI, Name: v.Name, Title: v.Title, Description: v.Description, MIMEType: MIMEType, Meta: meta,
	}, func(ctx context.Context) (mcp.ResourceContents, error) {
		page, err := render(ctx)
		if err == nil {
			err = checkHTML(page)
		}
		if err != nil {
			return mcp.ResourceContents{}, fmt.Errorf("view %q: %w", v.URI, err)
		}
		return mcp.ResourceContents{URI: v.URI, MIMEType: MIMEType, Text: page, Meta: meta}, nil
	})
}

func (v *View) check() error {
	if err := checkURI(v.URI); err != nil {
		return err
	}
	switch {
	case v.Name == "":
		return errors.New("the view has no name")
	case (v.HTML == "") == (v.Render == nil):
		return errors.New("a view has either HTML or Render")
	case v.Render == nil:
		if err := checkHTML(v.HTML); err != nil {
			return err
		}
	}
	return v.Needs.check()
}

func (n Needs) check() error {
	if n.Domain != "" && !isHost(n.Domain) {
		return fmt.Errorf("the domain %q is not a host name", n.Domain)
	}
	return n.CSP.check()
}

// checkURI checks the URI of a view.
func checkURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || !strings.HasPrefix(uri, "ui://") || u.Host == "" {
		return errors.New("the URI of a view must be ui:// and a name")
	}
	return nil
}

// checkHTML checks that a text can be an HTML5 document.
func checkHTML(page string) error {
	rest := strings.TrimPrefix(page, "\ufeff")
	for {
		rest = strings.TrimLeft(rest, " \t\r\n\f")
		after, ok := strings.CutPrefix(rest, "<!--")
		if !ok {
			break
		}
		if _, rest, ok = strings.Cut(after, "-->"); !ok {
			return errors.New("the document is an unterminated comment")
		}
	}
	const doctype = "<!doctype html"
	if len(rest) <= len(doctype) || !strings.EqualFold(rest[:len(doctype)], doctype) || !strings.ContainsRune("> \t\r\n\f", rune(rest[len(doctype)])) {
		return errors.New("the document must begin with <!DOCTYPE html>")
	}
	if !utf8.ValidString(page) {
		return errors.New("the document is not UTF-8")
	}
	return nil
}

func (c *CSP) check() error {
	if c == nil {
		return nil
	}
	for _, list := range [][]string{c.Connect, c.Resource, c.Frame, c.BaseURI} {
		for _, origin := range list {
			if err := checkOrigin(origin); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOrigin refuses an invalid origin, because it becomes part of a content security policy.
func checkOrigin(origin string) error {
	scheme, rest, _ := strings.Cut(origin, "://")
	host, port, hasPort := strings.Cut(rest, ":")
	name := strings.TrimPrefix(host, "*.")
	good := isHost(name) && (name == host || strings.Contains(name, ".")) && (!hasPort || port != "" && strings.Trim(port, "0123456789") == "")
	switch scheme {
	case "https", "wss":
	case "http", "ws":
		good = good && (host == "localhost" || host == "127.0.0.1")
	default:
		good = false
	}
	if !good {
		return fmt.Errorf("the origin %q must be like https://example.com, https://*.example.com or, on this machine, http://localhost:8080", origin)
	}
	return nil
}

// isHost reports whether s is a host name: labels of letters, digits and hyphens.
func isHost(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return len(s) <= 253
}

// encode writes a value that is known to have a JSON form.
func encode(v any) json.RawMessage {
	raw, err := jsonx.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("apps: encode %T: %w", v, err))
	}
	return raw
}
