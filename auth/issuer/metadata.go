package issuer

import (
	"bytes"
	"io"
	"net/http"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Methods of clients to authenticate (RFC 7591, 2).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

var methods = []string{methodNone, methodBasic, methodPost}

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// describe returns the metadata of the Server (RFC 8414, 2). Readers of the OpenID form require the
// last two members, although the Server issues no ID tokens.
func (s *Server) describe() ([]byte, error) {
	return jsonx.Marshal(struct {
		Issuer        string   `json:"issuer"`
		Authorize     string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Register      string   `json:"registration_endpoint"`
		Revoke        string   `json:"revocation_endpoint"`
		Keys          string   `json:"jwks_uri"`
		Scopes        []string `json:"scopes_supported"`
		Responses     []string `json:"response_types_supported"`
		Modes         []string `json:"response_modes_supported"`
		Grants        []string `json:"grant_types_supported"`
		TokenMethods  []string `json:"token_endpoint_auth_methods_supported"`
		RevokeMethods []string `json:"revocation_endpoint_auth_methods_supported"`
		Challenges    []string `json:"code_challenge_methods_supported"`
		Named         bool     `json:"authorization_response_iss_parameter_supported"`
		Documents     bool     `json:"client_id_metadata_document_supported"`
		Subjects      []string `json:"subject_types_supported"`
		Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	}{
		s.URL, s.URL + authorizePath, s.URL + tokenPath, s.URL + registerPath, s.URL + revokePath, s.URL + keysPath,
		append([]string{oauth.OfflineAccess}, s.Scopes...), []string{"code"}, []string{"query"}, []string{grantCode, grantRefresh},
		methods, methods, []string{"S256"}, true, true, []string{"public"}, []string{"ES256"},
	})
}

// document serves public JSON, to pages of all origins.
func (s *Server) document(w http.ResponseWriter, r *http.Request, body []byte) {
	if crossOrigin(w, r, "GET, HEAD") {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "read it with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(body)
}

// crossOrigin admits pages of all origins, whose requests have no cookies, and answers their
// preflights.
func crossOrigin(w http.ResponseWriter, r *http.Request, methods string) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "www-authenticate")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "authorization, content-type, accept, mcp-protocol-version")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// maxBody bounds the bytes of a request's body.
const maxBody = 64 << 10

// endpoint serves an endpoint that hosts post to.
func (s *Server) endpoint(w http.ResponseWriter, r *http.Request, answer func(r *http.Request, body []byte) (int, any, error)) {
	if crossOrigin(w, r, "POST") {
		return
	}
	w.Header().Set("Pragma", "no-cache") // RFC 6749, 5.1
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST, OPTIONS")
		writeError(w, &fault{status: http.StatusMethodNotAllowed, code: invalidRequest, text: "use POST"})
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		writeError(w, refuse(invalidRequest, "the body cannot be read"))
		return
	case len(body) > maxBody:
		writeError(w, &fault{status: http.StatusRequestEntityTooLarge, code: invalidRequest, text: "the body is too large"})
		return
	}
	status, v, err := answer(r, body)
	if err != nil {
		f := faultOf(err)
		s.failed("request of a host refused", err, "path", r.URL.Path, "client", r.RemoteAddr)
		writeError(w, f)
		return
	}
	if v == nil {
		w.WriteHeader(status)
		return
	}
	writeJSON(w, status, v)
}

// reply is an answer with JSON to a request that never left the process.
func reply(r *http.Request, body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}
}
