package cluster_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cluster"
)

// older sends a request to node n0 as a node of an older version does, which passes on the header of a client.
func older(t *testing.T, bus cluster.Bus, certificate string) string {
	c, err := bus.Dial(t.Context(), "n0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: mcp.example\r\nMcp-Session-Id: the-session\r\nPatchbay-Cluster-Hops: +\r\nPatchbay-Cluster-Certificate: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", certificate)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	return string(body)
}

// A forwarded request has the certificate of its client, verified or not as at the node that the client is connected to. A client
// cannot name one.
func TestForwardedCertificate(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	cert := web.Certificate()
	m := new(cluster.Memory)
	var nodes []*cluster.Node
	for i := range 2 {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "the-session")
			if r.TLS != nil {
				fmt.Fprint(w, i, " ", r.TLS.PeerCertificates[0].Equal(cert), " ", len(r.TLS.VerifiedChains) == 1 && r.TLS.VerifiedChains[0][0].Equal(cert))
			}
			fmt.Fprint(w, r.Header.Get("Patchbay-Cluster-Certificate"))
		})
		node := &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: m, Handler: h}
		if err := node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer node.Leave(context.Background())
		nodes = append(nodes, node)
	}
	send := func(node int, session string, s *tls.ConnectionState) string {
		r := httptest.NewRequest("POST", "http://mcp.example/", strings.NewReader("body"))
		r.TLS = s
		r.Header.Set("Patchbay-Cluster-Certificate", "verified "+base64.StdEncoding.EncodeToString(cert.Raw))
		r.Header.Set("Mcp-Session-Id", session)
		w := httptest.NewRecorder()
		nodes[node].ServeHTTP(w, r)
		return w.Body.String()
	}
	list := []*x509.Certificate{cert}
	send(0, "", nil)
	if got := older(t, m, "verified "+base64.StdEncoding.EncodeToString(cert.Raw)); got != "" {
		t.Errorf("through a node of an older version: %q", got)
	}
	for what, c := range map[string]struct {
		state *tls.ConnectionState
		want  string
	}{
		"none":       {nil, ""},
		"unverified": {&tls.ConnectionState{PeerCertificates: list}, "0 true false"},
		"verified":   {&tls.ConnectionState{PeerCertificates: list, VerifiedChains: [][]*x509.Certificate{list}}, "0 true true"},
	} {
		if got := send(1, "the-session", c.state); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
