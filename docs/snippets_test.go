package docs_test

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/servers/shop"
	"github.com/patchbay-dev/patchbay/skills"
	"github.com/patchbay-dev/patchbay/store/sqlite"
	"github.com/patchbay-dev/patchbay/trace"
)

// The code of the other pages.

type Trip struct {
	Date string `json:"date"`
}

type Alternative struct {
	Date string `json:"date"`
}

func free(date string) bool { return date != "2026-12-24" }

func bookTrip(ctx context.Context, in Trip) (string, error) {
	if free(in.Date) {
		return "booked " + in.Date, nil
	}
	alt, err := mcp.Elicit[Alternative](ctx, "No trips on "+in.Date+". Another date?")
	if err != nil {
		return "", err
	}
	return "booked " + alt.Date, nil
}

func TestAskingPage(t *testing.T) {
	got, err := mcptest.Run(t, bookTrip, Trip{"2026-12-24"}, "2026-12-27")
	if err != nil || got != "booked 2026-12-27" {
		t.Errorf("book = %q, %v", got, err)
	}
}

func render(context.Context, struct{}) (string, error) { return "rendered", nil }

func serveTasks(serve func(*mcp.Server) error) error {
	srv := &mcp.Server{Name: "studio"}
	mcp.AddTool(srv, mcp.Tool{
		Name:      "render",
		Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional},
	}, render)
	db, err := sqlite.Open("patchbay.db")
	if err != nil {
		return err
	}
	defer db.Close()
	srv.Tasks = mcp.TaskConfig{Store: db.Tasks(), TTL: 24 * time.Hour}
	return serve(srv)
}

func startTask(ctx context.Context, s *mcp.Session, args any, save func(id string)) error {
	task, err := s.StartTask(ctx, "render", args)
	if err != nil {
		return err
	}
	if task.ID == "" { // the server made no task, and nothing finds the call again after this session
		_, err := task.Wait(ctx)
		return err
	}
	save(task.ID)
	return nil
}

func finishTask(ctx context.Context, s *mcp.Session, id string) (*mcp.ToolResult, error) {
	res, err := s.Task(id).Wait(ctx)
	return res, err
}

func TestTasksPage(t *testing.T) {
	t.Chdir(t.TempDir())
	err := serveTasks(func(srv *mcp.Server) error {
		defer srv.Shutdown(context.WithoutCancel(t.Context()))
		s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2026_07_28)
		defer s.Close()
		var id string
		if err := startTask(t.Context(), s, nil, func(of string) { id = of }); err != nil {
			return err
		}
		if res, err := finishTask(t.Context(), s, id); err != nil || res.Text() != "rendered" {
			t.Errorf("render = %v, %v", res, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func keepEvents(server *mcp.Server) error {
	db, err := sqlite.Open("patchbay.db")
	if err != nil {
		return err
	}
	defer db.Close()
	server.HTTP.Events = db.Events()
	return server.Check()
}

func traced(file io.Writer) *mcp.Server {
	w := trace.NewWriter(file, nil)
	srv := &mcp.Server{Name: "calc", OnFrame: w.Record} // or a Client
	return srv
}

func served() (*mcp.Server, *os.Root) {
	root, err := os.OpenRoot("skills")
	if err != nil {
		log.Fatal(err)
	}
	srv := &mcp.Server{Name: "docs", Version: "1"}
	if _, err := skills.Serve(srv, root.FS()); err != nil {
		log.Fatal(err) // names each skill that breaks a rule
	}
	return srv, root
}

// firstWrite receives a value when something has been written.
type firstWrite chan struct{}

func (f firstWrite) Write(p []byte) (int, error) {
	select {
	case f <- struct{}{}:
	default:
	}
	return len(p), nil
}

func TestServersOfPages(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := keepEvents(newLibrary()); err != nil {
		t.Errorf("events: %v", err)
	}
	file := make(firstWrite, 1)
	mcptest.Connect(t, traced(file), &mcp.Client{}, mcp.V2026_07_28).Close()
	select {
	case <-file:
	case <-time.After(20 * time.Second):
		t.Error("nothing was recorded")
	}
	if err := os.MkdirAll(filepath.Join("skills", "tea"), 0o700); err != nil {
		t.Fatal(err)
	}
	skill := "---\nname: tea\ndescription: How to make tea\n---\nBoil water.\n"
	if err := os.WriteFile(filepath.Join("skills", "tea", "SKILL.md"), []byte(skill), 0o600); err != nil {
		t.Fatal(err)
	}
	docs, root := served()
	defer root.Close() // before its folder is removed, which Windows wants
	for _, srv := range []*mcp.Server{docs, permitted(newLibrary(), slog.Default()), viewed("<!DOCTYPE html>"), {Name: "gw", Handler: ruled(nil, slog.Default())}} {
		if err := srv.Check(); err != nil {
			t.Errorf("%s: %v", srv.Name, err)
		}
	}
	shopped()
}

func permitted(srv *mcp.Server, logger *slog.Logger) *mcp.Server {
	srv.Use(policy.Middleware("shop", &policy.Require{
		Tools:     map[string]policy.Requirement{"refund": {Scopes: []string{"shop:refund"}}, "erase": {Roles: []string{"admin"}}},
		Templates: map[string]policy.Requirement{"orders://{id}": {Scopes: []string{"shop:orders"}}},
	}, logger))
	return srv
}

func ruled(rules policy.Policy, logger *slog.Logger) *gateway.Gateway {
	g := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware { return policy.Middleware(server, rules, logger) }}
	return g
}

func viewed(page string) *mcp.Server {
	roll := func(context.Context, struct{}) (int, error) { return 4, nil }
	shake := roll
	srv := &mcp.Server{Name: "dice", Version: "1"}
	ui := apps.Enable(srv)
	ui.AddView(apps.View{URI: "ui://dice/cup", Name: "cup", HTML: page})
	apps.AddTool(ui, mcp.Tool{Name: "roll"}, apps.Link{ResourceURI: "ui://dice/cup"}, roll)
	apps.AddTool(ui, mcp.Tool{Name: "shake"}, apps.Link{Visibility: []apps.Audience{apps.App}}, shake)
	return srv
}

func shopped() {
	http.Handle("/mcp", shop.New(shop.Options{DB: "shop.db"}))
}

func anyAPI(ctx context.Context, key string) error {
	data, source, err := openapi.Load(ctx, "https://api.example.com/openapi.json", false, nil) // a file, too
	if err != nil {
		return err
	}
	doc, err := openapi.Parse(data)
	if err != nil {
		return err
	}
	srv, err := openapi.New(doc, openapi.Options{
		Source:      source, // a relative server of the document is relative to it
		Exclude:     []string{"DELETE *"},
		Credentials: map[string]string{"api_key": key},
	})
	if err != nil {
		return err
	}
	defer srv.Shutdown(ctx) // closes idle connections
	return http.ListenAndServe("127.0.0.1:7420", srv)
}

func guarded(mux *http.ServeMux, srv *mcp.Server) error {
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{
			&auth.JWT{Issuer: "https://login.example.com"},
			&auth.APIKeys{File: "keys.jsonl"},
		},
		Resource: &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
		Scopes:   []string{"tools"},
	}
	if err := guard.Check(); err != nil { // errors in the fields; with one, all requests get 500
		return err
	}
	mux.Handle("/mcp", guard.Protect(srv))
	err := http.ListenAndServe("127.0.0.1:7420", mux)
	return err
}

func peopleLogIn(mux *http.ServeMux, srv *mcp.Server, id string, secret auth.Secret) error {
	people := &issuer.Server{
		URL:      "https://mcp.example.com",
		Resource: "https://mcp.example.com/mcp",
		Provider: issuer.Provider{Issuer: "https://accounts.google.com", ClientID: id, Secret: secret},
		Require:  map[string][]string{"hd": {"example.com"}}, // else everybody with an account there
		Dir:      "login",                                    // else a restart ends all logins
	}
	if err := people.Check(); err != nil {
		return err
	}
	guard := &auth.Guard{Verifiers: []auth.Verifier{people.Verifier()}, Resource: &auth.ResourceMetadata{Resource: people.Resource}}
	people.Handle(mux)
	mux.Handle("/mcp", guard.Protect(srv))
	return nil
}

func loggedIn(ctx context.Context, url string) error {
	back, err := login.NewLoopback(login.OpenBrowser)
	if err != nil {
		return err
	}
	defer back.Close()
	transport := &login.Transport{Server: url, RedirectURL: back.RedirectURL(), Visit: back.Visit}
	client := &mcp.Client{
		Name:       "mine",
		HTTPClient: &http.Client{Transport: transport},
		Limits:     mcp.Limits{CallTimeout: 10 * time.Minute}, // calls wait while the user logs in
	}
	session, err := client.Dial(ctx, url)
	if err != nil {
		return err
	}
	return session.Close()
}

func registered(secret, url string) *login.Transport {
	direct := &login.Transport{
		Registered: func(ctx context.Context, server, issuer string) (*login.Credentials, error) {
			if issuer != "https://login.example.com" {
				return nil, nil // another issuer gets no secret
			}
			return &login.Credentials{ID: "my-program", Secret: secret}, nil
		},
	}
	registered := direct.Registered
	transport := &login.Transport{Server: url, Grant: &login.ClientCredentials{}, Registered: registered}
	return transport
}

func replayed(t *testing.T, newServer func() *mcp.Server) {
	mcptest.Replay(t, "testdata/t.jsonl", newServer()) // the server still answers like that
	mcptest.Mock(t, "testdata/t.jsonl")                // a server for tests of a client
}

// These need a browser, an issuer, the address or the file of the page. The examples auth-* and login,
// and TestRecorded, run the same calls.
var _ = []any{anyAPI, guarded, loggedIn, registered, replayed}

// The server of auth.md for people who log in elsewhere serves its metadata.
func TestPeopleLogIn(t *testing.T) {
	dir, err := os.MkdirTemp("", "people")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) // fails on Windows, where the lock of a server that never ends is in use
	t.Chdir(dir)
	mux := http.NewServeMux()
	if err := peopleLogIn(mux, &mcp.Server{Name: "x", Version: "1"}, "id", "secret"); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequest("GET", "https://mcp.example.com/.well-known/oauth-authorization-server", nil))
	if rec.Code != 200 {
		t.Errorf("metadata: HTTP %d", rec.Code)
	}
}
