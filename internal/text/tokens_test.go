package text_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/text"
)

func TestAboutTokens(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 99: "99", 994: "990", 996: "1,000", 1249: "1,200", 99_999: "100,000", 1_250_000: "1,300,000"} {
		if got := text.AboutTokens(n); got != "about "+want+" tokens" {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := text.Tokens(5); got != 2 {
		t.Errorf("5 bytes are %d tokens, want 2", got)
	}
}
