package listen

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

func TestAPITarget(t *testing.T) {
	for _, tt := range []struct {
		method, path, server, tool string
		ok                         bool
	}{
		{"GET", "/api", "", "", true},
		{"GET", "/api/", "", "", true},
		{"GET", "/api/a", "s/a", "", true},
		{"POST", "/api/a/b", "s/a", "b", true},
		{"GET", "/api/a/b", "s/a", "b", true},
		{"GET", "/api/v", "s/v", "", true},
		{"GET", "/api/v/b", "v/b", "", true},
		{"POST", "/api/v/b", "s/v", "b", true},
		{"POST", "/api/v/b/c", "v/b", "c", true},
		{"POST", "/api/%76/b/c", "v/b", "c", true},
		{"POST", "/api/a/b%2Fc", "s/a", "b/c", true},
		{"POST", "/api/a/%2e%2e", "s/a", "..", true},
		{"POST", "/api/a%2Fb", "s/a/b", "", true},
		{"POST", "/api/a/b/c", "", "", false},
		{"POST", "/api/v/b/c/d", "", "", false},
		{"POST", "/api/a/", "", "", false},
		{"POST", "/api//b", "", "", false},
	} {
		server, tool, ok := APITarget(httptest.NewRequest(tt.method, tt.path, nil))
		if server != tt.server || tool != tt.tool || ok != tt.ok {
			t.Errorf("%s %s is for %q, %q, %v, want %q, %q, %v", tt.method, tt.path, server, tool, ok, tt.server, tt.tool, tt.ok)
		}
	}
}

// anyKey accepts every credential.
type anyKey struct{}

func (anyKey) Verify(r *http.Request) (*auth.Principal, error) {
	if r.Header.Get("Authorization") == "" {
		return nil, auth.ErrNoCredential
	}
	return &auth.Principal{ID: "ada"}, nil
}

// deadlines counts the deadlines for reads that are set.
type deadlines struct {
	http.ResponseWriter
	n int
}

func (d *deadlines) SetReadDeadline(time.Time) error { d.n++; return nil }

// The API bounds bodies itself: a deadline for the body of a call would end the call.
func TestAPIBodies(t *testing.T) {
	e := &Endpoint{}
	e.api.handler = http.NotFoundHandler()
	for path, want := range map[string]int{"/api/a/b": 0, "/api": 0, "/mcp": 0, "/apis": 1, "/other": 1} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		boundBodies(http.NotFoundHandler(), e.ofAPI).ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader("{}")))
		if w.n != want {
			t.Errorf("%s: %d deadlines, want %d", path, w.n, want)
		}
	}
}

// The API is behind the guard of the endpoint, a view behind that of the view, also for a stranger who asks for a view that
// does not exist.
func TestAPIGuards(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const resource = "https://mcp.example/mcp"
	front, view := &mcp.Server{Name: "front", Version: "1"}, &mcp.Server{Name: "view", Version: "1"}
	e := New(front, l, Options{Log: slog.New(slog.DiscardHandler), Guard: &auth.Guard{Verifiers: []auth.Verifier{anyKey{}}, Resource: &auth.ResourceMetadata{Resource: resource, AuthorizationServers: []string{"https://idp.example"}}}})
	e.Below(func(path string) *mcp.Server {
		if path == "v/here" {
			return view
		}
		return nil
	})
	e.HandleAPI(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.EscapedPath()) }))
	e.Serve()
	t.Cleanup(func() { e.End(t.Context(), 10*time.Second) })
	at := strings.TrimSuffix(e.URL, Path)
	get := func(path, credential string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if credential != "" {
			r.Header.Set("Authorization", credential)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	for path, want := range map[string]string{"/api": resource, "/api/a/b": resource, "/api/v/here": resource + "/v/here", "/api/v/gone": resource + "/v/gone", "/api/v/here/tool": resource + "/v/here"} {
		if status, body := get(path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s without a credential: %d %s", path, status, body)
		}
		if status, body := get(path, "Bearer x"); status != http.StatusOK || body != path {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if _, body := get(path+"?oauth-protected-resource", ""); !strings.Contains(body, `"resource":"`+want+`"`) {
			t.Errorf("the resource of %s is %s, want %s", path, body, want)
		}
	}
	if lines := e.Notes(); len(lines) != 1 || lines[0] != "callers without MCP, over HTTP: "+at+"/api" {
		t.Errorf("notes: %q", lines)
	}
}
