// Package browser opens pages and files in the user's browser.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// ErrNone says that this machine cannot open a page, which has to be shown as a link.
var ErrNone = errors.New("no browser is available")

// patience bounds the wait for the program that opens pages to fail.
const patience = time.Second

// Open opens a page or a file, and does not wait for the user. It uses no shell. The caller checks the address, which all
// users of the machine can read, because it stands in the command line of a program. The error is [ErrNone] where no
// program can open pages, such as in a session without a screen.
//
// It leaves a goroutine behind for as long as the program that opens pages runs, which may be the
// browser itself.
func Open(ctx context.Context, what string) error {
	command := opener(runtime.GOOS, os.Getenv, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if command == nil {
		return ErrNone
	}
	cmd := exec.Command(command[0], append(command[1:], what)...) // it outlives ctx
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
	case <-time.After(patience): // it runs, so the page is on its way
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
