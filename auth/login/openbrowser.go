package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// ErrNoBrowser says that this machine cannot open a page, which has to be shown as a link.
var ErrNoBrowser = errors.New("login: no browser is available")

// openPatience bounds the wait for the program that opens pages to fail.
const openPatience = time.Second

// OpenBrowser opens a page in the user's browser, and does not wait for the user. It opens https
// pages, and http on loopback, without a shell. The error is [ErrNoBrowser] where no program can
// open pages, such as in a session without a screen. It fits [NewLoopback].
//
// It leaves a goroutine behind for as long as the program that opens pages runs, which may be the
// browser itself.
func OpenBrowser(ctx context.Context, page string) error {
	if err := checkPage(page); err != nil {
		return err
	}
	command := opener(runtime.GOOS, os.Getenv, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if command == nil {
		return ErrNoBrowser
	}
	cmd := exec.Command(command[0], append(command[1:], page)...) // it outlives ctx
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("open the browser: %s: %w", command[0], err)
		}
	case <-time.After(openPatience): // it runs, so the page is on its way
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// opener returns the command that opens pages on a system, or nil if there is none.
func opener(system string, env func(string) string, has func(name string) bool) []string {
	switch system {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case "darwin":
		return []string{"open"}
	}
	if env("WSL_DISTRO_NAME") != "" && has("wslview") {
		return []string{"wslview"}
	}
	// Without a screen, xdg-open starts a text browser, which would take over this terminal.
	if (env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != "") && has("xdg-open") {
		return []string{"xdg-open"}
	}
	return nil
}

// checkPage reports whether the address of a page can be shown to a user and given to a program: it
// has no characters but those of addresses (RFC 3986, 2), so that none means anything to a terminal
// or a command line.
func checkPage(page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !oauth.IsLoopback(u.Hostname())) || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not the address of a page", text.Short(page))
	}
	for _, c := range []byte(page) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~:/?#[]@!$&'()*+,;=%", c) >= 0) {
			return fmt.Errorf("%q is not the address of a page: it has the character %q", text.Short(page), c)
		}
	}
	return nil
}
