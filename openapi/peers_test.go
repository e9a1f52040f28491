package openapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
)

// rawAPI answers each connection with what a function writes after the first bytes of a request.
func rawAPI(t *testing.T, answer func(c net.Conn)) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 64<<10)); err == nil {
					answer(c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// endless writes a text again and again until the peer has closed the connection.
func endless(c net.Conn, head, text string) {
	io.WriteString(c, head)
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// drips writes a byte at a time until the peer has closed the connection.
func drips(c net.Conn, head string) {
	io.WriteString(c, head)
	for range time.Tick(20 * time.Millisecond) {
		if _, err := io.WriteString(c, "a"); err != nil {
			return
		}
	}
}

// A call of an API that is slow, dies or lies about its answer ends, in bounds, with words about what has happened.
func TestBadPeers(t *testing.T) {
	const ok, json = "HTTP/1.1 200 OK\r\n", "Content-Type: application/json\r\n"
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 100 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get}, post: {operationId: post, requestBody: {content: {application/json: {}}}}}}")
	text := func(s string) func(net.Conn) { return func(c net.Conn) { io.WriteString(c, s) } }
	for name, tt := range map[string]struct {
		answer func(c net.Conn)
		slow   bool // it ends at the time limit
		want   string
	}{
		"nothing":                  {func(c net.Conn) { io.Copy(io.Discard, c) }, true, "the API has not answered within"},
		"a header in drops":        {func(c net.Conn) { drips(c, ok+"X: ") }, true, "the API has not answered within"},
		"a body in drops":          {func(c net.Conn) { drips(c, ok+json+"Content-Length: 1000000\r\n\r\n") }, true, "the API has not answered within"},
		"the connection is closed": {func(net.Conn) {}, false, "the API did not answer: EOF"},
		"half of a body":           {text(ok + json + "Content-Length: 100\r\n\r\n[1"), false, "the answer of the API, 200 OK, broke off after 2 bytes"},
		"half of a chunk":          {text(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc"), false, "the answer of the API, 200 OK, broke off after 3 bytes"},
		"a chunk without a length": {text(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc"), false, "the answer of the API, 200 OK, broke off after 0 bytes: invalid byte"},
		"a negative length":        {text(ok + "Content-Length: -1\r\n\r\nabc"), false, "the API did not answer: "},
		"two lengths":              {text(ok + "Content-Length: 1\r\nContent-Length: 3\r\n\r\nabc"), false, "the API did not answer: "},
		"chunks without end": {func(c net.Conn) {
			endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n", "1000\r\n"+strings.Repeat("a", 0x1000)+"\r\n")
		}, false, "only its first 262144 bytes are here"},
		"100 MiB in gzip":     {text(ok + "Content-Encoding: gzip\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", bomb.Len()) + bomb.String()), false, "only its first 262144 bytes are here"},
		"gzip that is not":    {text(ok + "Content-Encoding: gzip\r\nContent-Length: 30\r\n\r\n" + strings.Repeat("a", 30)), false, "broke off after 0 bytes: gzip: invalid header"},
		"another encoding":    {text(ok + json + "Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"), false, `The API answered in the encoding "br", which this server has not asked for`},
		"gzip in gzip":        {text(ok + "Content-Encoding: gzip, gzip\r\nContent-Length: 3\r\n\r\nabc"), false, `The API answered in the encoding "gzip, gzip"`},
		"hints without end":   {func(c net.Conn) { endless(c, "", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n") }, false, "response headers exceeded"},
		"headers without end": {func(c net.Conn) { endless(c, ok, "X-A: "+strings.Repeat("a", 1000)+"\r\n") }, false, "response headers exceeded"},
		"another protocol": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			io.Copy(io.Discard, c)
		}, false, "the API switches to another protocol"},
		"not HTTP":          {text("SSH-2.0-OpenSSH_9.9\r\n"), false, "the API did not answer: "},
		"an unknown status": {text("HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"), false, "The API answered 999."},
		"503 with a date":   {text("HTTP/1.1 503 No\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n"), false, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openapi.Options{Base: rawAPI(t, tt.answer)}
			if tt.slow {
				o.Timeout = 200 * time.Millisecond
			}
			for _, tool := range []string{"get", "post"} { // each over connections of its own: the API closes them without a word
				res := call(t, open(t, doc, o), tool, `{}`)
				said := allText(res)
				if cut := strings.Contains(said, "only its first"); !strings.Contains(said, tt.want) || res.IsError == cut || len(said) > 300<<10 {
					t.Errorf("%s: %d bytes, %.300s, want %s", tool, len(said), said, tt.want)
				}
			}
		})
	}
}

// Each request names the programs that have forwarded its call, so that one that is itself the API refuses it. No argument
// and no header of the server does.
func TestHops(t *testing.T) {
	e := newEcho(t)
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get, parameters: [{name: Patchbay-Hops, in: header, schema: {type: string}}]}}}")
	s := open(t, doc, openapi.Options{Base: e.url, Header: http.Header{"Patchbay-Hops": {"mine"}}})
	for list, want := range map[string]string{"": hop.Self, `["a","b"]`: "a, b, " + hop.Self} {
		var options []mcp.CallOption
		if list != "" {
			options = append(options, mcp.WithMeta(mcp.Meta{hop.Meta: []byte(list)}))
		}
		if _, err := s.CallTool(t.Context(), "get", nil, options...); err != nil {
			t.Fatal(err)
		}
		if got := e.take().header.Get(hop.Header); got != want {
			t.Errorf("after %s the header is %s, want %s", list, got, want)
		}
	}
}

// transport counts requests, and adds a token.
type transport struct {
	mu    sync.Mutex
	hosts map[string]int // guarded by mu
}

func (c *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.hosts[req.URL.Host]++
	c.mu.Unlock()
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer fresh")
	return http.DefaultTransport.RoundTrip(req)
}

// A transport of one's own sends the requests to the host of the base, and no others, for many calls at once.
func TestTransport(t *testing.T) {
	e, other := newEcho(t), newEcho(t)
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get}}, /y: {get: {operationId: other, servers: [{url: '"+other.url+"'}]}}}")
	own := &transport{hosts: map[string]int{}}
	s := open(t, doc, openapi.Options{Base: e.url, Transport: own, Private: true})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if res, err := s.CallTool(t.Context(), "get", nil); err != nil || res.IsError {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if got := e.take(); got.header.Get("Authorization") != "Bearer fresh" {
		t.Errorf("the API gets %v", got.header)
	}
	call(t, s, "other", `{}`)
	if got := other.take(); got == nil || got.header.Get("Authorization") != "" || len(own.hosts) != 1 || own.hosts[strings.TrimPrefix(e.url, "http://")] != 50 {
		t.Errorf("%v: the other server gets %+v", own.hosts, got)
	}
	if _, err := openapi.New(doc, openapi.Options{Base: e.url, Transport: own, TLS: &tls.Config{}}); err == nil {
		t.Error("TLS, which has no effect, is accepted")
	}
}

// A call ends with its context, and its request too. The end of the server closes its connections.
func TestEnds(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	closed := make(chan struct{}, 10)
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(begun)
			<-r.Context().Done()
			close(ended)
		}
	}))
	api.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	api.Start()
	t.Cleanup(api.Close)
	srv, err := openapi.New(document(t, "3.0.0", "paths: {/x: {get: {operationId: get}}, /wait: {get: {operationId: wait}}}"), openapi.Options{Base: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	s, err := (&mcp.Client{}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wait := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s does not end", what)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() { <-begun; cancel(enough) }()
	// The tool may return its error before the call does.
	if res, err := s.CallTool(ctx, "wait", nil); !errors.Is(err, enough) && (err != nil || !res.IsError || res.Text() != enough.Error()) {
		t.Errorf("the call ends with %v, %v", res, err)
	}
	wait("the request", ended)
	wait("its connection", closed)
	call(t, s, "get", `{}`)
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	wait("the idle connection", closed)
}

// A document is read from where it may be, with words about where it may not.
func TestLoad(t *testing.T) {
	e := newEcho(t)
	host := strings.TrimPrefix(e.url, "http://")
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			w.WriteHeader(http.StatusUnauthorized)
		case "/api/self":
			if err := hop.CheckHeader(r.Header); err != nil {
				http.Error(w, err.Error(), http.StatusLoopDetected)
			}
		case "/there":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/empty":
		default:
			io.WriteString(w, "openapi: 3.0.0")
		}
	}
	for _, tt := range []struct {
		from    string
		private bool
		want    string // of the error
	}{
		{e.url + "/d.yaml", true, ""},
		{e.url + "/d.yaml", false, `"127.0.0.1" is at an address of this machine; with --allow-private`},
		{"http://169.254.169.254/d.yaml", true, "documents are not read from there"},
		{"http://169.254.169.254/d.yaml", false, "documents are not read from there"},
		{e.url + "/there", true, "documents are not read from there"},
		{"http://user:word@" + host + "/d.yaml", true, "has a user name or password in it"},
		{e.url + "/login", true, "download the document with your credentials"},
		{e.url + "/empty", true, "the answer is empty"},
		{e.url + "/api/self", true, hop.ErrLoop.Error()},
	} {
		data, source, err := openapi.Load(t.Context(), tt.from, tt.private, nil)
		switch {
		case tt.want == "" && (err != nil || string(data) != "openapi: 3.0.0" || source != tt.from):
			t.Errorf("%s: %q from %s, %v", tt.from, data, source, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "word@")):
			t.Errorf("%s: %v, want %s", tt.from, err, tt.want)
		}
	}
	if _, _, err := openapi.Load(t.Context(), e.url+"/api/self", true, nil); !errors.Is(err, hop.ErrLoop) {
		t.Errorf("a loop: %v", err)
	}
}

// people accepts the name of a person as a bearer token.
type people struct{}

func (people) Verify(r *http.Request) (*auth.Principal, error) {
	who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, auth.ErrNoCredential
	}
	return &auth.Principal{ID: who}, nil
}

// Each person has a credential of their own, and nobody sees any, however many call at the same time.
func TestCredentialOfEachPerson(t *testing.T) {
	const callers = 40
	var all sync.WaitGroup
	all.Add(callers)
	e := newEcho(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait() // all credentials are known to the server now
		fmt.Fprintf(w, "%s has %s", r.Header.Get("X-Who"), r.Header.Get("Authorization"))
	}
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get, parameters: [{name: X-Who, in: header, schema: {type: string}}]}}}\ncomponents: {securitySchemes: {login: {type: oauth2, flows: {}}}}\nsecurity: [{login: []}]")
	srv, err := openapi.New(doc, openapi.Options{Base: e.url, Credential: func(ctx context.Context, scheme string) (string, error) {
		return scheme + "-token-of-" + auth.From(ctx).ID, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer((&auth.Guard{Verifiers: []auth.Verifier{people{}}}).Protect(srv))
	defer front.Close()
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			who := fmt.Sprint("person", i)
			s, err := (&mcp.Client{Header: http.Header{"Authorization": {"Bearer " + who}}}).Dial(t.Context(), front.URL)
			if err != nil {
				t.Error(err)
				all.Done()
				return
			}
			defer s.Close()
			if res, err := s.CallTool(t.Context(), "get", map[string]string{"X-Who": who}); err != nil || res.Text() != who+" has Bearer [credential]" {
				t.Errorf("%s: %v, %v", who, res, err)
			}
		})
	}
	calls.Wait()
}

// A header that the server sends itself is not an argument, even of operations that require it, and those at other hosts keep it.
func TestHeaderOfServer(t *testing.T) {
	e, other := newEcho(t), newEcho(t)
	parameters := "parameters: [{name: apiKey, in: header, required: true, schema: {type: string}}, {name: id, in: query, required: true, schema: {type: string}}]"
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get, "+parameters+"}}, /y: {get: {operationId: other, servers: [{url: '"+other.url+"'}], "+parameters+"}}}")
	s := open(t, doc, openapi.Options{Base: e.url, Header: http.Header{"Apikey": {"secret-of-the-server"}}, Private: true})
	schemas := map[string]string{}
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = string(tool.InputSchema)
	}
	if got := schemas["get"]; strings.Contains(got, "apiKey") || !strings.Contains(got, `"required":["id"]`) {
		t.Errorf("the schema is %s", got)
	}
	if got := schemas["other"]; !strings.Contains(got, `"required":["apiKey","id"]`) {
		t.Errorf("the schema of the other host is %s", got)
	}
	if res, got := call(t, s, "get", `{"id":"7"}`), e.take(); res.IsError || got.header.Get("apiKey") != "secret-of-the-server" {
		t.Errorf("%s: %+v", res.Text(), got)
	}
	if res := call(t, s, "get", `{"id":"7","apiKey":"mine"}`); !res.IsError || e.take() != nil {
		t.Errorf("an argument of that name: %s", res.Text())
	}
	if res, got := call(t, s, "other", `{"id":"7","apiKey":"mine"}`), other.take(); res.IsError || got.header.Get("apiKey") != "mine" {
		t.Errorf("%s: %+v", res.Text(), got)
	}
}
