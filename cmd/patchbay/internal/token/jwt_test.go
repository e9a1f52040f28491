package token_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/token"
)

func TestJWT(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	j := &token.JWT{Subject: "ada", Scopes: []string{"a", "b"}, Claims: []string{"level=3", "team=red"}, TTL: time.Hour}
	payload, err := j.Payload(now)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"exp":1790003600,"iat":1790000000,"level":3,"scope":"a b","sub":"ada","team":"red"}`
	if string(payload) != want {
		t.Errorf("payload %s, want %s", payload, want)
	}
	key, made, err := token.Key(filepath.Join(t.TempDir(), "k.pem"))
	if err != nil || !made {
		t.Fatal(made, err)
	}
	for alg, key := range map[string]any{"HS256": bytes.Repeat([]byte("k"), 32), "ES256": key} {
		text, err := token.Sign(payload, key)
		if err != nil {
			t.Fatal(err)
		}
		info := token.Inspect(text, now)
		if info.Kind != "jwt" || !strings.Contains(string(info.Header), alg) || string(info.Claims) != want {
			t.Errorf("%s: %s %s", alg, info.Header, info.Claims)
		}
	}
	j.Claims = []string{"level"}
	if _, err := j.Payload(now); err == nil || err.Error() != "--claim level is not NAME=VALUE" {
		t.Errorf("claim without a value: %v", err)
	}
}
