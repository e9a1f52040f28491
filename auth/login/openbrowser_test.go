package login

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Only pages are opened: no script, no file, and nothing that a program could take for an option
// or a command line for another word. SEC-26-016, SEC-26-018.
func TestPagesThatAreNotOpened(t *testing.T) {
	for _, page := range []string{
		"", "javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "--version", "-a", "/etc/passwd", "C:\\x", "vbscript:x", "http://example.com/", "ms-settings:x",
		"https:opaque", "https://", "//example.com", "HTTPS//example.com", "https://me@example.com/", " https://example.com/", "https://example.com/a b",
		"https://example.com/?a=\"", "https://example.com/?a=`id`", "https://example.com/?a=|calc", "https://example.com/?a=^&b", "https://example.com/\x1b[2J", "https://example.com/\n--x", "https://ex\u009bample.com/", "https://example.com/?a=<b>",
	} {
		if err := checkPage(page); err == nil {
			t.Errorf("%q is a page", page)
		}
		if err := OpenBrowser(t.Context(), page); err == nil || errors.Is(err, ErrNoBrowser) {
			t.Errorf("OpenBrowser(%q) = %v, want that it is no page", page, err)
		}
	}
	for _, page := range []string{"https://example.com/a?b=c&d=%20(e)", "http://127.0.0.1:8080/x", "http://[::1]:80/"} {
		if err := checkPage(page); err != nil {
			t.Errorf("%q: %v", page, err)
		}
	}
}

// The program gets the address as one word, unchanged; if it fails at once, so does OpenBrowser.
// SEC-26-017.
func TestOpenBrowser(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the system's own opener cannot be replaced")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	t.Setenv("WSL_DISTRO_NAME", "")
	t.Setenv("OUT", filepath.Join(dir, "out"))
	const page = "https://example.com/?a=$(id)&b=c;d"
	script(`printf '%s:%s' $# "$1" > "$OUT"`)
	if err := OpenBrowser(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	// A machine that is busy may take longer than a program gets to fail, also between making the file and writing it.
	for deadline := time.Now().Add(time.Minute); len(got) < len("1:"+page) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		got, err = os.ReadFile(filepath.Join(dir, "out"))
	}
	if string(got) != "1:"+page {
		t.Errorf("the program got %q, %v", got, err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if err := OpenBrowser(t.Context(), page); !errors.Is(err, ErrNoBrowser) {
		t.Errorf("without a screen: %v, want ErrNoBrowser", err)
	}
}
