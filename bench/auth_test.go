package bench_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	benchIssuer   = "https://login.example.com"
	benchResource = "https://mcp.example.com/mcp"
)

// guarded puts a Guard for JWTs in front of a server, and makes a token that it accepts.
func guarded(tb testing.TB, s *mcp.Server) (h http.Handler, token string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{"iss":"` + benchIssuer + `","sub":"alice","aud":"` + benchResource + `","exp":9999999999,"scope":"read write"}`))
	if err != nil {
		tb.Fatal(err)
	}
	if token, err = signed.CompactSerialize(); err != nil {
		tb.Fatal(err)
	}
	g := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: benchIssuer, Keys: []crypto.PublicKey{key.Public()}}},
		Resource:  &auth.ResourceMetadata{Resource: benchResource},
		Scopes:    []string{"read"},
	}
	return g.Protect(s), token
}

// BenchmarkAuth measures the cost of an access token in a call: on a socket, and without
// net/http. The target is 1.3 times the call without a token.
func BenchmarkAuth(b *testing.B) {
	text := prose(100)
	frame := modernFrame("tools/call", echoMembers(text))
	for _, with := range []string{"none", "jwt"} {
		b.Run("wire=handler/auth="+with, func(b *testing.B) {
			s := newServer(b, 1)
			var h http.Handler = s
			token := ""
			if with == "jwt" {
				h, token = guarded(b, s)
			}
			c := modernCaller(b, h, "tools/call", "echo")
			if token != "" {
				c.req.Header.Set("Authorization", "Bearer "+token)
			}
			b.ReportAllocs()
			for b.Loop() {
				if c.post(frame); c.status != http.StatusOK {
					b.Fatalf("status %d", c.status)
				}
			}
		})
		b.Run("wire=socket/auth="+with, func(b *testing.B) {
			s := newServer(b, 1)
			var h http.Handler = s
			header := http.Header{}
			if with == "jwt" {
				var token string
				h, token = guarded(b, s)
				header.Set("Authorization", "Bearer "+token)
			}
			c := speaking(mcp.V2026_07_28)
			c.Header = header
			session := dial(b, h, c)
			b.ReportAllocs()
			for b.Loop() {
				echo(b, session, text)
			}
		})
	}
}
