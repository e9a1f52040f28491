package interop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// servers are the Go peers that this test binary can be, by name.
var servers = map[string]func(ctx context.Context, w wire) error{
	"gosdk":    serveGoSDK,
	"lax":      serveLax,
	"mcpgo":    serveMCPGo,
	"patchbay": serveOurs,
}

// TestMain runs the tests; or, as "serve NAME WIRE", one of the Go peers; or, under that
// name, the program that opens pages.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && filepath.Base(os.Args[0]) == openerName {
		if err := openPage(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "open:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		if err := servers[os.Args[2]](context.Background(), wire(os.Args[3])); err != nil {
			fmt.Fprintln(os.Stderr, "serve:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	browser.End()
	removeProgram()
	os.Exit(code)
}

// serveHTTP serves h on a free loopback port, prints the address of its
// endpoint, and returns when standard input ends, so that no server outlives
// the test that started it.
func serveHTTP(h http.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", ln.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	srv := &http.Server{Handler: mux}
	go func() {
		var b [1]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				srv.Close()
				return
			}
		}
	}()
	if err := srv.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return nil
}
