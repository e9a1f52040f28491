package ports

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	gosdkbasic "github.com/patchbay-dev/patchbay/interop/ports/gosdk/basic"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/completion"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/custommethod"
	gosdkelicitation "github.com/patchbay-dev/patchbay/interop/ports/gosdk/elicitation"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/hello"
	gosdkhttp "github.com/patchbay-dev/patchbay/interop/ports/gosdk/http"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/listfeatures"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/middleware"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/sse"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/toolschemas"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/dynamicpath"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/elicitation"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/inprocess"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/inprocesssampling"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/multiroundtrip"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/rootsserver"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/samplingserver"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/simpleclient"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/structured"
	"github.com/patchbay-dev/patchbay/interop/ports/mcpgo/typedtools"
	"github.com/patchbay-dev/patchbay/mcp"
)

// port is a program, and its original below the examples of its SDK.
type port struct {
	original string
	main     func()
	server   func() *mcp.Server // of a program that is client and server in one; else nil
}

var ports = map[string]port{
	"gosdk/basic":             {"server/basic", gosdkbasic.Main, gosdkbasic.NewServer},
	"gosdk/completion":        {"server/completion", completion.Main, nil},
	"gosdk/custommethod":      {"server/custom-method", custommethod.Main, custommethod.NewServer},
	"gosdk/elicitation":       {"server/elicitation", gosdkelicitation.Main, gosdkelicitation.NewServer},
	"gosdk/hello":             {"server/hello", hello.Main, nil},
	"gosdk/http":              {"http", gosdkhttp.Main, nil},
	"gosdk/listfeatures":      {"client/listfeatures", listfeatures.Main, nil},
	"gosdk/middleware":        {"server/middleware", middleware.Main, middleware.NewServer},
	"gosdk/sse":               {"server/sse", sse.Main, nil},
	"gosdk/toolschemas":       {"server/toolschemas", toolschemas.Main, nil},
	"mcpgo/dynamicpath":       {"dynamic_path", dynamicpath.Main, nil},
	"mcpgo/elicitation":       {"elicitation", elicitation.Main, nil},
	"mcpgo/inprocess":         {"in_process", inprocess.Main, inprocess.NewServer},
	"mcpgo/inprocesssampling": {"inprocess_sampling", inprocesssampling.Main, inprocesssampling.NewServer},
	"mcpgo/multiroundtrip":    {"multi_round_trip", multiroundtrip.Main, multiroundtrip.NewServer},
	"mcpgo/rootsserver":       {"roots_server", rootsserver.Main, nil},
	"mcpgo/samplingserver":    {"sampling_server", samplingserver.Main, nil},
	"mcpgo/simpleclient":      {"simple_client", simpleclient.Main, nil},
	"mcpgo/structured":        {"structured_input_and_output", structured.Main, nil},
	"mcpgo/typedtools":        {"typed_tools", typedtools.Main, nil},
}

// portEnv and serveEnv select what the test binary runs as: a port, or the server of one.
const portEnv, serveEnv = "PATCHBAY_PORT", "PATCHBAY_PORT_SERVER"

// originals is the folder of the original clients and servers.
var originals string

func TestMain(m *testing.M) {
	if p, ok := ports[os.Getenv(portEnv)]; ok {
		p.main()
		return
	}
	if p, ok := ports[os.Getenv(serveEnv)]; ok {
		if err := p.server().ServeStdio(context.Background()); err != nil {
			panic(err)
		}
		return
	}
	code := m.Run()
	if originals != "" {
		os.RemoveAll(originals)
	}
	os.Exit(code)
}

// self returns the command of the test binary as a port, or as the server of one.
func self(t *testing.T, env, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), env+"="+name)
	return cmd
}

// original returns the program of an example; the first call builds all that tests need.
func original(t *testing.T, example string) string {
	t.Helper()
	if originals == "" {
		dir, err := os.MkdirTemp("", "originals")
		if err != nil {
			t.Fatal(err)
		}
		originals = dir
		build := exec.Command("go", "build", "-o", dir+string(filepath.Separator))
		for _, of := range []string{"gosdk/client/listfeatures", "gosdk/http", "gosdk/server/hello", "mcpgo/sampling_client", "mcpgo/roots_client", "mcpgo/typed_tools"} {
			sdk, example, _ := strings.Cut(of, "/")
			build.Args = append(build.Args, modules[sdk]+"/examples/"+example)
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build.Args, err, out)
		}
	}
	file := filepath.Join(originals, example)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	return file
}

// output runs a command and returns what it prints on standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, &stderr)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// start starts a server, which ends with the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// soon calls f until it succeeds, for a server that is starting.
func soon(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// The programs that are client and server in one print what their originals print.
func TestOutput(t *testing.T) {
	for name, want := range map[string]string{
		"gosdk/basic":       "Hi user\n",
		"gosdk/elicitation": "Server requests: Please provide your configuration settings\nConfiguration received: Endpoint: https://api.example.com, Max Retries: 3, Logs: true\n",
		"gosdk/custommethod": "Hello                               → salve\nSeize the day                       → carpe diem\nPeace                               → pax\n" +
			"Truth                               → veritas\nI came I saw I conquered            → veni vidi vici\n",
		"gosdk/middleware":        "Tool result: Hello, World!\n",
		"mcpgo/inprocess":         "foo bar",
		"mcpgo/inprocesssampling": "Tool result: LLM Response (model: mock-llm-v1): Mock LLM response to: 'What is the capital of France?'\n",
		"mcpgo/multiroundtrip":    "connected using protocol version 2026-07-28\n\nserver asks: Deploy to production?\nclient answers: yes\ndeployed to production\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := output(t, self(t, portEnv, name))
			if !strings.Contains(got, want) {
				t.Errorf("it prints\n%s\nwant\n%s", got, want)
			}
			if name == "gosdk/middleware" && (!strings.Contains(got, `msg="Calling tool" name="\"greet\"" args="{\"name\":\"World\"}"`) || !strings.Contains(got, "MCP method completed")) {
				t.Errorf("the log is\n%s", got)
			}
		})
	}
}
