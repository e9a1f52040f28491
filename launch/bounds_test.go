package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/bounds"
	"github.com/patchbay-dev/patchbay/mcp"
)

// hoard keeps the memory of the tool eat.
var hoard [][]byte

// greedy adds tools that use memory, or start processes, and then wait.
func greedy(srv *mcp.Server) {
	mcp.AddTool(srv, mcp.Tool{Name: "eat"}, func(ctx context.Context, in struct {
		MB int `json:"mb"`
	}) (string, error) {
		for range in.MB {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			hoard = append(hoard, block)
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	mcp.AddTool(srv, mcp.Tool{Name: "fork"}, func(ctx context.Context, in struct {
		N    int    `json:"n"`
		File string `json:"file"` // gets the processes
	}) (string, error) {
		pids, err := os.Create(in.File)
		if err != nil {
			return "", err
		}
		defer pids.Close()
		for range in.N {
			cmd := exec.Command(os.Args[0])
			if _, err := cmd.StdinPipe(); err != nil { // it waits for a message
				return "", err
			}
			if err := cmd.Start(); err != nil {
				return "", err
			}
			if _, err := fmt.Fprintln(pids, cmd.Process.Pid); err != nil { // at once: the limit may end this process between two
				return "", err
			}
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
}

// bounded returns a gateway with a command that has limits.
func bounded(t *testing.T, memory int64, processes int) (*Servers, *Env) {
	t.Helper()
	t.Setenv(parentName, "")
	env := &Env{}
	f := &Servers{Env: env, Gateway: &gateway.Gateway{Name: "g", Version: "1"}}
	t.Cleanup(f.Close)
	f.Set([]config.Server{{
		Name: "a", Command: os.Args[0], Env: map[string]string{"LAUNCH_TEST_SERVER": "1"}, Share: "shared",
		Memory: memory, Processes: processes, Source: "mcp.json:3",
	}}, nil, "")
	return f, env
}

// stopped checks that a server that was over a limit was started again, and that its operator finds why.
func stopped(t *testing.T, f *Servers, why string) {
	t.Helper()
	soon(t, "the server answers again", func() bool {
		said, err := ask(t, f.Gateway, "a_self")
		return err == nil && said != ""
	})
	if s := f.Gateway.Status()[0]; !strings.Contains(s.Lost, why) || s.Restarts != 1 {
		t.Errorf("%d restarts, lost: %q", s.Restarts, s.Lost)
	}
	told := func(l Line) bool {
		return l.Event && strings.HasPrefix(l.Text, "it was stopped") && strings.Contains(l.Text, why)
	}
	soon(t, "the journal has the reason", func() bool { return slices.ContainsFunc(f.Journal("a").Last(100), told) })
}

func refusedCall(t *testing.T, f *Servers, params string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := f.Gateway.Handle(ctx, &mcp.Request{Method: "tools/call", Params: []byte(params)})
	if err == nil {
		t.Fatalf("the call has the result %s", res.JSON())
	}
	return err.Error()
}

// A command that uses more memory than its entry allows is ended and started again. The call in progress
// fails with the reason, and so do its status and its journal.
func TestMemoryLimit(t *testing.T) {
	if !bounds.Supported {
		t.Skip("no limits on this system")
	}
	f, _ := bounded(t, 300e6, 0)
	why := "MB of memory and its entry allows 300 MB"
	if got := refusedCall(t, f, `{"name":"a_eat","arguments":{"mb":500}}`); !strings.Contains(got, why) || !strings.Contains(got, "may or may not have run") {
		t.Errorf("the call in progress: %s", got)
	}
	stopped(t, f, why)
}

// A command that starts more processes than its entry allows is ended with all of them.
func TestProcessLimit(t *testing.T) {
	if !bounds.Supported {
		t.Skip("no limits on this system")
	}
	f, _ := bounded(t, 0, 3)
	file := filepath.Join(t.TempDir(), "pids")
	why := regexp.MustCompile(`ran [45] processes and its entry allows 3`).FindString(refusedCall(t, f, fmt.Sprintf(`{"name":"a_fork","arguments":{"n":4,"file":%q}}`, file)))
	if why == "" {
		t.Error("the call in progress does not say that it ran too many processes")
	}
	stopped(t, f, why)
	pids, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		soon(t, "process "+pid+" ends", func() bool {
			n, _ := strconv.Atoi(pid)
			p, err := os.FindProcess(n)
			return err != nil || ended(p)
		})
	}
}

// A command within its limits is left alone, and a system without support says so once.
func TestWithinLimits(t *testing.T) {
	f, env := bounded(t, 2e9, 50)
	soon(t, "the server answers", func() bool { _, err := ask(t, f.Gateway, "a_self"); return err == nil })
	var notes []string
	env.Note = func(text string) { notes = append(notes, text) } // that of the server a has come
	entry := config.Server{Name: "b", Command: os.Args[0], Env: map[string]string{"LAUNCH_TEST_SERVER": "1"}, Memory: 2e9, Processes: 50, Source: "mcp.json:4"}
	for range 2 {
		s, err := env.Open(t.Context(), entry, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b := s.bound; bounds.Supported && (b == nil || b.Reason() != "") {
			t.Errorf("bound %v", b)
		}
		s.Close()
	}
	want := []string{"b: memory and processes are not limited on this system (mcp.json:4)"}
	if runtime.GOOS == "linux" {
		want = nil
	}
	if !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
	if s := f.Gateway.Status()[0]; s.Restarts != 0 {
		t.Errorf("restarted %d times: %s", s.Restarts, s.Lost)
	}
}
