package issuer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A login that has ended stays so, whatever another process has written after that.
func TestEndedLoginStaysEnded(t *testing.T) {
	dir := t.TempDir()
	ends := time.Now().Add(time.Hour).Unix()
	lines := fmt.Sprintf(`{"id":"a","ends":%d}`+"\n"+`{"id":"a","ends":%[1]d,"over":true}`+"\n"+`{"id":"a","generation":1,"ends":%[1]d}`+"\n", ends)
	if err := os.WriteFile(filepath.Join(dir, sessionFile), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also once the file was made anew
		s, err := openSessions(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.advance("a", 1); !s.over("a") || err == nil {
			t.Fatal("the login goes on")
		}
	}
}
