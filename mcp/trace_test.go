package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// frames keeps what it is told.
type frames struct {
	mu   sync.Mutex
	list []trace.Frame // guarded by mu
}

func (r *frames) record(f trace.Frame) {
	f.Msg, f.Raw = bytes.Clone(f.Msg), bytes.Clone(f.Raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, f)
}

func (r *frames) all() []trace.Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// messages are those of one direction, sorted, as streams have no order among each
// other, and each once: the client tries initialize on one transport after the other.
func (r *frames) messages(dir trace.Dir) []string {
	var out []string
	for _, f := range r.all() {
		if f.Message() && f.Dir == dir {
			out = append(out, string(f.Msg))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *frames) kinds(kind trace.Kind) (list []trace.Frame) {
	for _, f := range r.all() {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	return list
}

// recordedWires open a session over each transport.
var recordedWires = map[string]func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error){
	"memory": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		near, far := jsonrpc.Pipe()
		go s.Serve(t.Context(), far)
		return c.Connect(t.Context(), mcptest.Wire(near))
	},
	"http": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		return dialTest(t, s, s, "http", c)
	},
	"sse": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		return dialTest(t, s, s.SSE("/messages"), "http", c)
	},
	"websocket": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		return dialTest(t, s, s.WebSocket(), "ws", c)
	},
	"tcp": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.ServeListener(t.Context(), l)
		return c.Dial(t.Context(), "tcp://"+l.Addr().String())
	},
	"unix": func(t *testing.T, s *mcp.Server, c *mcp.Client) (*mcp.Session, error) {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Skip(err)
		}
		go s.ServeListener(t.Context(), l)
		return c.Dial(t.Context(), "unix://"+path)
	},
}

func dialTest(t *testing.T, s *mcp.Server, h http.Handler, scheme string, c *mcp.Client) (*mcp.Session, error) {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return c.Dial(t.Context(), scheme+strings.TrimPrefix(srv.URL, "http"))
}

// TestBothSidesRecordTheSame: on every transport and in both eras, each side records every message,
// the server of those that the client recorded as sent, and the opening and end of the connection.
func TestBothSidesRecordTheSame(t *testing.T) {
	for name, open := range recordedWires {
		for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			if name == "sse" && rev == mcp.V2026_07_28 {
				continue
			}
			t.Run(name+"/"+string(rev), func(t *testing.T) {
				t.Parallel()
				var ofServer, ofClient frames
				s := &mcp.Server{Name: "s", OnFrame: ofServer.record}
				mcp.AddTool(s, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
					mcp.Progress(ctx, 1, 2, "half")
					_, err := mcp.Confirm(ctx, "sure?")
					return "done", err
				})
				c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, OnFrame: ofClient.record,
					OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "decline"}, nil
					}}
				session, err := open(t, s, c)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := session.CallTool(t.Context(), "work", nil); err != nil {
					t.Fatal(err)
				}
				session.Close()
				s.Shutdown(t.Context())

				if diff := cmp.Diff(ofClient.messages(trace.Out), ofServer.messages(trace.In)); diff != "" {
					t.Errorf("messages of the client (-as it sent them +as the server got them):\n%s", diff)
				}
				if diff := cmp.Diff(ofServer.messages(trace.Out), ofClient.messages(trace.In)); diff != "" {
					t.Errorf("messages of the server (-as it sent them +as the client got them):\n%s", diff)
				}
				if n := len(ofClient.messages(trace.In)); n < 3 {
					t.Errorf("%d messages of the server, want at least 3", n)
				}
				for side, list := range map[string][]trace.Frame{"server": ofServer.all(), "client": ofClient.all()} {
					for _, f := range list {
						if f.Conn == "" || f.Transport != name && !(name == "sse" && f.Transport == "http") {
							t.Errorf("%s: frame of connection %q and transport %q, want a name and %q", side, f.Conn, f.Transport, name)
						}
					}
				}
				if got := ofClient.kinds(trace.KindSession); len(got) != 1 || !strings.HasPrefix(got[0].Note, string(rev)+" with s") {
					t.Errorf("session frames %v, want one of %s", got, rev)
				}
				if got := ofServer.kinds(trace.KindSession); rev == mcp.V2025_11_25 && name != "sse" && (len(got) != 1 || got[0].Note != "2025-11-25 with c: initialize" || got[0].Dir != trace.In) {
					t.Errorf("session frames of the server %v, want one", got)
				}
				if name == "http" || name == "sse" {
					checkExchanges(t, "client", ofClient.all())
					checkExchanges(t, "server", ofServer.all())
					return
				}
				for side, r := range map[string]*frames{"server": &ofServer, "client": &ofClient} {
					if o, c := len(r.kinds(trace.KindOpen)), len(r.kinds(trace.KindClose)); o != 1 || c != 1 {
						t.Errorf("%s: %d opened and %d closed, want one of each", side, o, c)
					}
				}
			})
		}
	}
}

// checkExchanges wants a request and one answer, in this order, for each HTTP exchange.
func checkExchanges(t *testing.T, side string, list []trace.Frame) {
	t.Helper()
	type exchange struct {
		transport string
		n         int
	}
	asked, answered := map[exchange]bool{}, map[exchange]bool{}
	for _, f := range list {
		if f.HTTP == nil {
			continue
		}
		x := exchange{f.Transport, f.HTTP.Exchange}
		switch {
		case x.n == 0:
			t.Errorf("%s: an exchange without a number: %+v", side, f.HTTP)
		case f.HTTP.Method != "":
			if asked[x] {
				t.Errorf("%s: exchange %v asked twice", side, x)
			}
			asked[x] = true
		case f.HTTP.Status != 0:
			if !asked[x] || answered[x] {
				t.Errorf("%s: exchange %v answered before it was asked, or twice", side, x)
			}
			answered[x] = true
		default:
			if !answered[x] && f.Kind != trace.KindClose {
				t.Errorf("%s: exchange %v has an event before its head: %+v", side, x, f)
			}
		}
	}
	if len(asked) < 2 || len(answered) < 2 {
		t.Errorf("%s: %d asked and %d answered, want both", side, len(asked), len(answered))
	}
}

// TestChildIsRecorded: its start, its standard error, stray output and its end.
func TestChildIsRecorded(t *testing.T) {
	var r frames
	c := &mcp.Client{Name: "c", OnFrame: r.record, Revisions: []mcp.Revision{mcp.V2025_11_25}}
	cmd := exec.Command("sh", "-c", `echo "hello there" >&2; echo "stray print"; printf "no end of line" >&2; read line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
read line; printf '{"jsonrpc":"2.0","metho'; exit 3`, "token=hunter2")
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	s, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.Close()
	text := func(list []trace.Frame) (out []string) {
		for _, f := range list {
			out = append(out, fmt.Sprint(f.Note, string(f.Raw)))
		}
		return out
	}
	if got := r.kinds(trace.KindStart); len(got) != 1 || !strings.HasPrefix(got[0].Note, "pid ") || !slices.Equal(got[0].Args, cmd.Args) {
		t.Errorf("start frames %+v", got)
	}
	if got := text(r.kinds(trace.KindStderr)); !slices.Equal(got, []string{"hello there", "no end of line"}) {
		t.Errorf("standard error was recorded as %q", got)
	}
	if got := text(r.kinds(trace.KindExit)); !slices.Equal(got, []string{"exit status 3"}) {
		t.Errorf("the exit was recorded as %q", got)
	}
	if got := r.messages(trace.In); !slices.Contains(got, "stray print") || !slices.Contains(got, `{"jsonrpc":"2.0","metho`) {
		t.Errorf("what is no message was not recorded: %q", got)
	}
}

// TestSecretsAreNotRecorded: LOG-26-008. A secret, in any place and on either side, is not in the
// file.
func TestSecretsAreNotRecorded(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			var file bytes.Buffer
			w := trace.NewWriter(&file, nil)
			s := &mcp.Server{Name: "s", OnFrame: w.Record}
			type login struct {
				Password string `json:"password"`
				Note     string `json:"note"`
			}
			mcp.AddTool(s, mcp.Tool{Name: "login"}, func(_ context.Context, in login) (map[string]any, error) {
				return map[string]any{"access_token": in.Password, "list": []any{map[string]any{"api_key": in.Password}}}, nil
			})
			c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, OnFrame: w.Record, Header: http.Header{
				"Authorization": {"Bearer " + secret}, "Cookie": {"a=" + secret}, "X-Api-Key": {secret},
			}}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Set-Cookie", "s="+secret)
				w.Header().Set("Www-Authenticate", "Bearer error="+"none")
				s.ServeHTTP(w, r)
			}))
			defer srv.Close()
			url := strings.Replace(srv.URL, "://", "://me:"+secret+"@", 1) + "/mcp?token=" + secret
			session, err := c.Dial(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			res, err := session.CallTool(t.Context(), "login", login{secret, "see https://me:" + secret + "@example.com/?api_key=" + secret})
			if err != nil || !strings.Contains(string(res.Structured), secret) {
				t.Fatalf("login = %v, %v; want it to work", res, err)
			}
			session.Close()
			s.Shutdown(t.Context())
			srv.Close()
			if _, err := c.Dial(t.Context(), url); err == nil { // refused, with the URL in the error
				t.Fatal("the server is still there")
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(file.String(), "\n") {
				if strings.Contains(line, secret) || strings.Contains(line, "Mcp-Session-Id\":[\"") && !strings.Contains(line, "Mcp-Session-Id\":[\""+trace.Redacted) {
					t.Errorf("a secret is in %s", line)
				}
			}
			if !strings.Contains(file.String(), `"access_token":"[redacted]"`) {
				t.Error("the answer is not in the recording")
			}
		})
	}
}
