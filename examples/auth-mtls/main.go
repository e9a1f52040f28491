// Command auth-mtls serves callers with a client certificate from the authority in ca.pem.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"os"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

func handler() http.Handler {
	srv := &mcp.Server{Name: "guarded", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "you are " + auth.From(ctx).ID, nil
	})
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.MTLS{}},
	}
	return guard.Protect(srv)
}

func main() {
	pem, err := os.ReadFile("ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	srv := &http.Server{Addr: "127.0.0.1:7420", Handler: handler(), TLSConfig: &tls.Config{
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}}
	log.Fatal(srv.ListenAndServeTLS("server.pem", "server.key"))
}
