// Command modelserver serves a script of package modeltest, for programs under test and for trying
// things by hand. It prints the base URL for the APIs of OpenAI; package provider takes it for that
// of Anthropic too.
//
//	go run ./host/modeltest/modelserver -listen 127.0.0.1:7425 script.yaml
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("%d arguments: give the file of one script", flag.NArg())
	}
	script, err := modeltest.Load(flag.Arg(0))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	s := &http.Server{Handler: modeltest.Handler(script), ReadHeaderTimeout: 10 * time.Second}
	return s.Serve(l)
}
