package login

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
)

// AUTH-26-018.
func TestReadChallenge(t *testing.T) {
	tests := []struct {
		name    string
		headers []string
		want    challenge
	}{
		{"none", nil, challenge{}},
		{"bare", []string{"Bearer"}, challenge{}},
		{"all", []string{`Bearer error="insufficient_scope", scope="a b a", resource_metadata="https://h/p"`}, challenge{errorCode: "insufficient_scope", scope: []string{"a", "b"}, metadata: "https://h/p"}},
		{"spelling", []string{`bEARER Scope = a ,ERROR="e"`}, challenge{errorCode: "e", scope: []string{"a"}}},
		{"after another", []string{`Basic realm="a, Bearer scope=x", Bearer scope="y"`}, challenge{scope: []string{"y"}}},
		{"after a token68", []string{`Negotiate a+/b==, Bearer scope=y`}, challenge{scope: []string{"y"}}},
		{"other header", []string{`Basic realm=x`, `Bearer scope=y`}, challenge{scope: []string{"y"}}},
		{"the one with metadata", []string{`Bearer scope=x`, `Bearer scope=y, resource_metadata="m"`, `Bearer resource_metadata="n"`}, challenge{scope: []string{"y"}, metadata: "m"}},
		{"escapes", []string{`Bearer realm="a\"b", scope="c\d"`}, challenge{scope: []string{"cd"}}},
		{"first of two", []string{`Bearer scope=a, scope=b`}, challenge{scope: []string{"a"}}},
		{"no quote at the end", []string{`Bearer error=e, scope="a`}, challenge{errorCode: "e"}},
		{"folded", []string{"Bearer error=\"e\",\t scope=\"a\""}, challenge{errorCode: "e", scope: []string{"a"}}},
		{"no scope", []string{"Bearer scope=\"a\x01b \xff c\""}, challenge{scope: []string{"c"}}},
		{"other scheme", []string{`Negotiate scope="a"`}, challenge{}},
		{"bound tokens", []string{`DPoP scope="a"`}, challenge{scope: []string{"a"}, bound: true}},
		{"bound or not", []string{`DPoP algs="ES256"`, `Bearer scope="a", resource_metadata="m"`}, challenge{scope: []string{"a"}, metadata: "m"}},
		{"a nonce", []string{`Bearer, DPoP error="use_dpop_nonce"`}, challenge{nonce: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := readChallenge(http.Header{"Www-Authenticate": tt.headers})
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(challenge{})); diff != "" {
				t.Errorf("readChallenge(%q): -want +got\n%s", tt.headers, diff)
			}
		})
	}
}

// The result for any header is bounded. A value that is quoted into a header comes out again,
// whatever stood before it in another header.
func FuzzReadChallenge(f *testing.F) {
	f.Add(`Basic realm="x", Bearer scope=a`, "https://h/p", "a b")
	f.Add(`Negotiate a==, b`, `q"\`, "c\"d")
	f.Fuzz(func(t *testing.T, header, metadata, scope string) {
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
		whole := `Bearer resource_metadata="` + quote(metadata) + `", scope="` + quote(scope) + `"`
		got := readChallenge(http.Header{"Www-Authenticate": {whole}})
		if got.metadata != metadata || !slices.Equal(got.scope, oauth.ParseScopes(scope)) {
			t.Fatalf("%q gave %+v", whole, got)
		}
		got = readChallenge(http.Header{"Www-Authenticate": {header}})
		if len(got.scope) > oauth.MaxScopes || len(got.metadata) > len(header) {
			t.Fatalf("%q gave %+v", header, got)
		}
		for _, s := range got.scope {
			if strings.ContainsAny(s, " \t\r\n\"") || s == "" {
				t.Fatalf("%q gave the scope %q", header, s)
			}
		}
	})
}
