package inspector

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Access is a call of a tool that a page asks about. Nothing calls the tool.
type Access struct {
	Principal string          `json:"principal"` // the ID of the caller, such as "apikey#ada"; empty: anonymous
	Roles     []string        `json:"roles"`
	Scopes    []string        `json:"scopes"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`      // by its name at the server
	Arguments json.RawMessage `json:"arguments"` // an object; nil: none
}

const maxAccess = 256 << 10 // bytes of the body of /ui/explain

// explain answers what the gateway would do with a call. Values of a policy may be secret, so only administrators ask.
func (p *Page) explain(w http.ResponseWriter, r *http.Request) (any, error) {
	by, admin := callerOf(r)
	switch {
	case p.Gateway.Explain == nil:
		return nil, fail(http.StatusNotFound, "only a gateway has a policy, and this page is not that of a gateway")
	case !admin:
		return nil, fail(http.StatusForbidden, "%s does not have the role %q, which this needs", by, "admin")
	}
	var a Access
	if err := readBody(w, r, maxAccess, &a, "principal", "roles", "scopes", "server", "tool", "arguments"); err != nil {
		return nil, err
	}
	known := false
	for _, s := range p.Report().Servers {
		known = known || s.Name == a.Server
	}
	switch {
	case !known:
		return nil, fail(http.StatusNotFound, "no server has the name %q", a.Server)
	case a.Tool == "":
		return nil, fail(http.StatusBadRequest, "the tool is missing")
	case len(a.Arguments) > 0 && string(a.Arguments) != "null" && a.Arguments[0] != '{':
		return nil, fail(http.StatusBadRequest, "the arguments are not an object")
	}
	if string(a.Arguments) == "null" {
		a.Arguments = nil
	}
	out, err := p.Gateway.Explain(r.Context(), &a)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "%v", err)
	}
	return out, nil
}

// readBody reads a JSON value of at most max bytes: with names an object that has these members alone.
func readBody(w http.ResponseWriter, r *http.Request, max int64, into any, names ...string) error {
	raw, err := readAll(w, r, max)
	if err != nil {
		return err
	}
	return strictly(raw, into, names...)
}

// strictly decodes exactly one JSON value, without members of the same name: with names an object that has these members
// alone, in their exact case.
func strictly(raw []byte, into any, names ...string) error {
	if err := jsonx.Unmarshal(raw, into); err != nil {
		return fail(http.StatusBadRequest, "the body cannot be used: %v", err)
	}
	if names == nil {
		return nil
	}
	if jsonx.KindOf(raw) != '{' {
		return fail(http.StatusBadRequest, "the body cannot be used: it is not an object")
	}
	for name := range jsonx.Members(raw) {
		if !slices.Contains(names, string(name)) {
			return fail(http.StatusBadRequest, "the body cannot be used: unknown field %q", text.Clip(string(name), 100))
		}
	}
	return nil
}
