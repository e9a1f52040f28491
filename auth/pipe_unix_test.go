//go:build !windows

package auth_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/auth"
)

// A pipe in place of a file of keys delays no caller: the earlier content stays valid.
func TestKeyFileBecomesAPipe(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	known := &auth.APIKeys{File: file}
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	if _, err := known.Verify(r); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(file, os.O_RDWR, 0) // it writes nothing, so a reader would wait
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	time.Sleep(600 * time.Millisecond) // until the file is looked at again
	done := make(chan error, 1)
	go func() {
		_, err := known.Verify(r)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error("the earlier content is not valid: ", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a caller waits for the pipe")
	}
}
