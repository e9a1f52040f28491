package launch_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// clock makes the servers that this program brings along.
func clock(string, []string, *slog.Logger) (mcp.Handler, error) {
	srv := &mcp.Server{Name: "clock", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
	return srv, nil
}

// A session with the server of an entry. A command or a URL would be opened in the same way.
func ExampleEnv_Open() {
	env := &launch.Env{Builtin: clock}
	entry := config.Server{Name: "clock", Builtin: "clock"}
	session, err := env.Open(context.Background(), entry, &mcp.Client{Name: "example", Version: "1"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(context.Background(), "now", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	// Output: noon
}

// Servers of a configuration behind one gateway. Follow would read them from a file, and again when it
// changes.
func ExampleServers() {
	g := &gateway.Gateway{Name: "example", Version: "1"}
	servers := &launch.Servers{Env: &launch.Env{Builtin: clock}, Gateway: g}
	defer servers.Close()
	fmt.Println(servers.Set([]config.Server{{Name: "clock", Builtin: "clock"}}, nil, ""))
	session, err := (&mcp.Client{Name: "example", Version: "1"}).Open(context.Background(), g)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(context.Background(), "clock_now", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	// Output:
	// [+ clock]
	// noon
}
