package host_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The servers of the run with faults. Four are processes: this program with faultyServer set. One
// is reached over HTTP, and one is in memory. They record their actions in a shared folder: each
// run of a tool that changes something is a line of the journal, with the mark of the call. Each
// fault happens once.

const (
	faultyServer = "HOST_TEST_SERVER" // which server this process is to be
	faultyFolder = "HOST_TEST_FOLDER"
)

// fixture is what the servers share.
type fixture struct{ folder string }

// once reports whether a fault must happen now: it returns true on the first call in any process.
func (f fixture) once(fault string) bool {
	file, err := os.OpenFile(filepath.Join(f.folder, "fault-"+fault), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// add adds a line to a file with one write.
func (f fixture) add(name, line string) error {
	file, err := os.OpenFile(filepath.Join(f.folder, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

func (f fixture) lines(name string) []string {
	data, _ := os.ReadFile(filepath.Join(f.folder, name))
	return strings.Fields(string(data))
}

// deed holds the arguments of a tool that changes something.
type deed struct {
	Mark   string `json:"mark"`
	Amount int    `json:"amount"`
}

// do runs it.
func (f fixture) do(d deed) error { return f.add("journal", d.Mark+"="+strconv.Itoa(d.Amount)) }

// seen returns how many times it ran.
func (f fixture) seen(mark string) (n int) {
	for _, line := range f.lines("journal") {
		if strings.HasPrefix(line, mark+"=") {
			n++
		}
	}
	return n
}

// readsJournal adds a tool that tells whether an action has happened.
func (f fixture) readsJournal(srv *mcp.Server) {
	mcp.AddTool(srv, mcp.Tool{Name: "seen", Description: "Tells whether a mark was posted", Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(true)}},
		func(ctx context.Context, in struct {
			Mark string `json:"mark"`
		}) (string, error) {
			return map[bool]string{true: "yes", false: "no"}[f.seen(in.Mark) > 0], nil
		})
}

// key holds the arguments of a tool that looks something up.
type key struct {
	N int `json:"n"`
}

// serveFaulty is the main function of a server in a process of its own.
func serveFaulty(which string) {
	f := fixture{os.Getenv(faultyFolder)}
	if err := f.add("pids", strconv.Itoa(os.Getpid())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	srv := map[string]func() *mcp.Server{"ledger": f.ledger, "slow": f.slow, "raw": f.raw}[which]()
	if err := srv.ServeStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ledger crashes before an action, crashes after one, and hangs after one.
func (f fixture) ledger() *mcp.Server {
	srv := &mcp.Server{Name: "ledger", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "post", Description: "Posts an amount"}, func(ctx context.Context, d deed) (string, error) {
		if d.Mark == "m3" && f.once("crash-before") {
			os.Exit(2)
		}
		if err := f.do(d); err != nil {
			return "", err
		}
		if d.Mark == "m5" && f.once("crash-after") {
			os.Exit(2)
		}
		if d.Mark == "m7" && f.once("hang-after") {
			select {} // whatever the client says
		}
		return "posted", nil
	})
	f.readsJournal(srv)
	return srv
}

// slow starts slowly, hangs and crashes while it looks something up. It speaks an old revision.
func (f fixture) slow() *mcp.Server {
	time.Sleep(700 * time.Millisecond)
	srv := &mcp.Server{Name: "slow", Version: "1", Revisions: []mcp.Revision{mcp.V2025_03_26}}
	mcp.AddTool(srv, mcp.Tool{Name: "lookup", Description: "Squares a number", Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(true)}},
		func(ctx context.Context, in key) (int, error) {
			if in.N == 2 && f.once("hang") {
				select {}
			}
			if in.N == 4 && f.once("crash") {
				fmt.Fprintln(os.Stderr, "out of luck")
				os.Exit(3)
			}
			return in.N * in.N, nil
		})
	return srv
}

// raw sends invalid answers: one that is not JSON, one with the wrong id, and one that does not fit
// its schema. One has 10 MB, under the race detector 1.
func (f fixture) raw() *mcp.Server {
	srv := &mcp.Server{Name: "raw", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
	type out struct {
		Value int `json:"value"`
	}
	mcp.AddTool(srv, mcp.Tool{Name: "convert", Description: "Doubles a number", Annotations: &mcp.ToolAnnotations{Idempotent: ptr(true)}},
		func(ctx context.Context, in key) (out, error) { return out{2 * in.N}, nil })
	mcp.AddTool(srv, mcp.Tool{Name: "big", Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(true)}}, func(context.Context, struct{}) (string, error) {
		bytes := long.OrRaced(10<<20, 1<<20)
		return "begin " + strings.Repeat("0123456789abcde\n", bytes/16) + "end", nil
	})
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	wire := os.Stdout
	os.Stdout = w
	id := regexp.MustCompile(`"id":\d+`)
	spoil := map[string]func(line []byte) []byte{
		`{"value":2}`: func(line []byte) []byte { return append(bytes.Clone(line[:len(line)/2]), '\n') },
		`{"value":4}`: func(line []byte) []byte { return id.ReplaceAll(line, []byte(`"id":987654`)) },
		`{"value":6}`: func(line []byte) []byte {
			return bytes.ReplaceAll(line, []byte(`{"value":6}`), []byte(`{"value":"six"}`))
		},
		`{"value":8}`: func(line []byte) []byte { return append([]byte("debug: here I am\n"), line...) },
	}
	go func() { // ends with the process
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			for part, change := range spoil {
				if len(line) < 1000 && bytes.Contains(line, []byte(part)) && f.once("raw-"+strings.Trim(part[9:], "}")) {
					line = change(line)
				}
			}
			if _, werr := wire.Write(line); err != nil || werr != nil {
				os.Exit(1)
			}
		}
	}()
	return srv
}

// web is reached over HTTP. It fails, is busy, and loses connections, before and after it has run a
// call.
func (f fixture) web(t testing.TB) string {
	srv := &mcp.Server{Name: "web", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "order", Description: "Orders something"}, func(ctx context.Context, d deed) (string, error) {
		return "ordered", f.do(d)
	})
	mcp.AddTool(srv, mcp.Tool{Name: "price", Description: "Tells a price", Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(true)}},
		func(ctx context.Context, in key) (int, error) { return 100 + in.N, nil })
	f.readsJournal(srv)
	lose := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	status := func(code int, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if len(header) > 0 {
				w.Header().Set("Retry-After", header[0])
			}
			w.WriteHeader(code)
		}
	}
	faults := []struct {
		name, body string
		after      bool // the server has done its work
		do         func(http.ResponseWriter)
	}{
		{"500-after", `"mark":"w1"`, true, status(500)},
		{"503-before", `"mark":"w2"`, false, status(503, "1")},
		{"lost-after", `"mark":"w3"`, true, lose},
		{"lost-before", `"mark":"w4"`, false, lose},
		{"429-before", `"mark":"w5"`, false, status(429)},
		{"502", `{"n":1}`, false, status(502)},
		{"lost-read", `{"n":2}`, true, lose},
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, fault := range faults {
			if bytes.Contains(body, []byte(`"tools/call"`)) && !bytes.Contains(body, []byte(`"seen"`)) && bytes.Contains(body, []byte(fault.body)) && f.once(fault.name) {
				if fault.after {
					srv.ServeHTTP(httptest.NewRecorder(), r)
				}
				fault.do(w)
				return
			}
		}
		srv.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// storm is in memory and keeps changing its tools.
func (f fixture) storm(t testing.TB) *mcp.Server {
	srv := &mcp.Server{Name: "storm", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "stamp", Description: "Stamps something"}, func(ctx context.Context, d deed) (string, error) {
		return "stamped", f.do(d)
	})
	f.readsJournal(srv)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			mcp.AddTool(srv, mcp.Tool{Name: fmt.Sprintf("gust%d", i%3), Description: fmt.Sprintf("The %dth", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
			select {
			case <-time.After(5 * time.Millisecond):
			case <-over:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		wg.Wait()
	})
	return srv
}

// servers returns the five as servers of a host.
func (f fixture) servers(t testing.TB) []host.Server {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var list []host.Server
	for _, role := range []string{"ledger", "slow", "raw", "large"} {
		// Where nothing hangs, 10 MB may take their time.
		name, timeout := role, time.Duration(0)
		if role == "large" {
			role, timeout = "raw", time.Minute
		}
		list = append(list, host.Server{Name: name, Trusted: true, CallTimeout: timeout, Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), faultyServer+"="+role, faultyFolder+"="+f.folder)
			return c.Start(ctx, cmd)
		}})
	}
	url := f.web(t)
	web := &http.Transport{}
	t.Cleanup(web.CloseIdleConnections)
	list = append(list, host.Server{Name: "web", Trusted: true, Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		c.HTTPClient = &http.Client{Transport: web}
		return c.Dial(ctx, url)
	}})
	storm := inMemory("storm", f.storm(t))
	storm.Trusted = true
	return append(list, storm)
}
