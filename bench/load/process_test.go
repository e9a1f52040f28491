//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The test binary is the server too: with LOAD_SERVER=kind in the environment.
func TestMain(m *testing.M) {
	if kind := os.Getenv("LOAD_SERVER"); kind != "" {
		if err := serve(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type in struct {
	Message string `json:"message"`
}

func serve(kind string) error {
	s := &mcp.Server{Name: "s", Version: "1"}
	var calls atomic.Int64
	mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in in) (string, error) {
		if calls.Add(1) > 3 && kind == "liar" {
			return in.Message + "!", nil
		}
		return in.Message, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "second"}, func(_ context.Context, in in) (string, error) { return "", nil })
	switch kind {
	case "unable":
		os.Exit(exitUnsupported)
	case "broken":
		return errors.New("I am broken")
	}
	return s.ServeStdio(context.Background())
}

func startKind(t *testing.T, kind string, r Revision) (*Stdio, error) {
	t.Setenv("LOAD_SERVER", kind)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	s, err := StartStdio(ctx, r, self)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

const short = 5 * time.Millisecond

func TestStdio(t *testing.T) {
	for _, r := range []Revision{Legacy, Modern} {
		s, err := startKind(t, "honest", r)
		if err != nil {
			t.Fatal(err)
		}
		if s.Startup <= 0 {
			t.Errorf("%s: started in %v", r, s.Startup)
		}
		for _, inFlight := range []int{1, 16} {
			got, err := s.Echo("echo", Text(100), inFlight, short, short)
			if err != nil || got.Calls < 1 || got.CPU <= 0 || got.P50 <= 0 {
				t.Errorf("%s, %d in flight: %+v, %v", r, inFlight, got, err)
			}
		}
		if got, err := s.List(2, short, short); err != nil || got.Calls < 1 {
			t.Errorf("%s, list: %+v, %v", r, got, err)
		}
		if got, err := s.List(3, short, short); err == nil {
			t.Errorf("%s, a list that is too short: %+v", r, got)
		}
		if got, err := s.Echo("second", Text(100), 1, short, short); err == nil {
			t.Errorf("%s, a tool that does not echo: %+v", r, got)
		}
	}
}

// Later answers are checked too.
func TestStdioLiar(t *testing.T) {
	for _, inFlight := range []int{1, 16} {
		s, err := startKind(t, "liar", Legacy)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Echo("echo", Text(100), inFlight, short, time.Minute); err == nil {
			t.Errorf("%d in flight: %+v", inFlight, got)
		}
	}
}

func TestStdioStartFails(t *testing.T) {
	if _, err := startKind(t, "unable", Legacy); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a server without the mode: %v", err)
	}
	if _, err := startKind(t, "broken", Legacy); err == nil || !strings.Contains(err.Error(), "I am broken") {
		t.Errorf("a broken server: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	tests := []struct {
		stat        string
		pid, parent int
		ok          bool
	}{
		{"12 (a) S 3 12 12 0", 12, 3, true},
		{"12 (a) b) (c 4) R 7 1", 12, 7, true},
		{"12 (a", 0, 0, false},
		{"", 0, 0, false},
	}
	for _, tt := range tests {
		if pid, parent, ok := parseStat([]byte(tt.stat)); pid != tt.pid || parent != tt.parent || ok != tt.ok {
			t.Errorf("parseStat(%q) = %d, %d, %v", tt.stat, pid, parent, ok)
		}
	}
}

func TestParseAnon(t *testing.T) {
	if n, err := parseAnon("VmRSS:\t 900 kB\nRssAnon:\t    12 kB\nRssFile:\t 1 kB\n"); n != 12<<10 || err != nil {
		t.Errorf("parseAnon = %d, %v", n, err)
	}
	for _, bad := range []string{"", "VmRSS:\t 900 kB\n", "RssAnon:\t x kB\n"} {
		if n, err := parseAnon(bad); err == nil {
			t.Errorf("parseAnon(%q) = %d", bad, n)
		}
	}
}
