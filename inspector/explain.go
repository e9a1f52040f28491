package inspector

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
		return nil, fail(http.StatusNotFound, "this page is not that of a gateway, so there is no policy")
	case !admin:
		return nil, fail(http.StatusForbidden, "%s does not have the role %q, which this needs", by, "admin")
	}
	var a Access
	if err := readBody(w, r, maxAccess, &a); err != nil {
		return nil, err
	}
	known := false
	for _, s := range p.Report().Servers {
		known = known || s.Name == a.Server
	}
	switch {
	case !known:
		return nil, fail(http.StatusNotFound, "there is no server %q", a.Server)
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

// readBody reads a JSON object of at most max bytes, with members of into alone.
func readBody(w http.ResponseWriter, r *http.Request, max int64, into any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fail(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", max)
	case err != nil:
		return fail(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fail(http.StatusBadRequest, "the body cannot be used: %v", err)
	}
	return nil
}
