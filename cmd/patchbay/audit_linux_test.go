package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
)

func init() {
	if os.Getenv(testRun) != "" {
		signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit of a file is an error
	}
}

// While the audit log cannot be written, calls are refused, or made if gateway.yaml says so; the state
// of the gateway says why. Afterwards everything is as before.
func TestUpAuditFullDisk(t *testing.T) {
	for _, failure := range []string{"refuse", "pass"} {
		t.Run(failure, func(t *testing.T) {
			r, log, _ := audited(t, "audit: {file: audit.jsonl, onFailure: "+failure+"}\n", map[string]any{"stub": stubServer(t)})
			limit := func(bytes uint64) {
				t.Helper()
				if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
					t.Fatal(err)
				}
			}
			ready := func() string {
				res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, _ := io.ReadAll(res.Body)
				return res.Status + string(text)
			}
			s, err := (&mcp.Client{Name: "desk", Version: "1"}).Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			call := func() error {
				_, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 1})
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(log)
			if err != nil {
				t.Fatal(err)
			}
			limit(uint64(info.Size()))
			err = call()
			switch told := ready(); {
			case failure == "pass" && (err != nil || !strings.HasPrefix(told, "200") || !strings.Contains(told, `"error":"audit log: cannot write to `)):
				t.Errorf("the call has the error %v, and the state is %s", err, told)
			case failure == "refuse" && (err == nil || !strings.Contains(err.Error(), "audit log cannot be written (file too large)") ||
				!strings.HasPrefix(told, "503") || !strings.Contains(told, `"reason":"calls are refused, because the audit log cannot be written"`)):
				t.Errorf("the call has the error %v, and the state is %s", err, told)
			}
			if req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(r.url, "/mcp")+"/readyz", nil); err != nil {
				t.Error(err)
			} else if req.Header.Set("Via", "a proxy"); failure == "refuse" {
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if want := `{"program":"patchbay","state":"failing","reason":"calls are refused, because the audit log cannot be written"}` + "\n"; string(text) != want {
					t.Errorf("behind a proxy the state is %s, want %s", text, want)
				}
			}
			if got := patchbay(t, "status"); !strings.Contains(got, "(audit log "+log) || !strings.Contains(got, "file too large") {
				t.Errorf("status shows\n%s", got)
			}
			limit(unix.RLIM_INFINITY)
			until(t, "the log is written again", func() bool {
				told := ready()
				return strings.HasPrefix(told, "200") && !strings.Contains(told, `"error"`)
			})
			if err := call(); err != nil {
				t.Error(err)
			}
			r.stop(t)
			want := []string{"call.begin args", "call.end args ok", "call.begin args", "call.end args ok", "call.begin args", "call.end args ok"}
			if failure == "refuse" { // it has not left
				want = slices.Replace(want, 2, 4, "call.end args error")
			}
			if whole, err := audit.Verify([]string{log}, nil); err != nil || !whole.Whole() {
				t.Errorf("%+v, %v", whole, err)
			}
			got := facts(t, log)
			for i := range got {
				fact, _, _ := strings.Cut(got[i], " without its caller")
				got[i] = strings.TrimSpace(fact)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Serve reports the state of its audit log as up does.
func TestServeAuditFullDisk(t *testing.T) {
	runtimeFolder(t)
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	served, stderr := program(t, "serve", "shop", "--http", "127.0.0.1:0", "--audit", log)
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	defer served.Wait()
	defer served.Process.Kill()
	stderr.await(t, "listening on")
	url := regexp.MustCompile(`http://\S+`).FindString(stderr.String())
	s, err := (&mcp.Client{Name: "desk", Version: "1"}).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := func() error {
		_, err := s.CallTool(t.Context(), "add-to-cart", map[string]any{"product": "prd-1013"})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	ready := func() (code int, r health.Report) {
		res, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, r
	}
	if code, r := ready(); code != http.StatusOK || r.State != health.Ready || r.From != "serve" || r.Audit == nil || r.Audit.File != log || len(r.Servers) != 1 || r.Servers[0].Minute == nil || r.Servers[0].Minute.Calls == 0 {
		t.Errorf("the state is %d %+v", code, r)
	}
	if err := unix.Prlimit(served.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
	if err := call(); err == nil || !strings.Contains(err.Error(), "audit log cannot be written") {
		t.Errorf("the call has the error %v", err)
	}
	if code, r := ready(); code != http.StatusServiceUnavailable || r.State != health.Failing || r.Reason != "calls are refused, because the audit log cannot be written" {
		t.Errorf("the state is %d %+v", code, r)
	}
	if got := patchbay(t, "status"); !strings.Contains(got, url+": failing") || !strings.Contains(got, "(audit log "+log) || !strings.Contains(got, "file too large") {
		t.Errorf("status shows\n%s", got)
	}
	if got := patchbay(t, "status", "-s", url); !strings.Contains(got, "(audit log "+log) {
		t.Errorf("status -s shows\n%s", got)
	}
}
