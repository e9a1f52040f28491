package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// Control sequences: the other screen without a cursor, and back; the upper left corner; to the end
// of a line, and of the screen.
const (
	enter   = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave   = "\x1b[?25h\x1b[?1049l"
	home    = "\x1b[H"
	clearTo = "\x1b[K"
	clear   = "\x1b[J"
)

// Run shows the table on the terminal out, and redraws it every second, until q or ctrl-C is typed
// at the terminal in, or ctx ends. The function ask returns the gateways.
func Run(ctx context.Context, in, out *os.File, ask func(context.Context) ([]health.Found, error), bold func(string) string) error {
	raw, err := terminal.Raw(in, out)
	if err != nil {
		return fmt.Errorf("the terminal does not allow single keys: %w", err)
	}
	defer raw.Restore()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // a read from a terminal cannot be interrupted: it ends with the program at the latest
		defer end()
		waitForEnd(in)
	}()
	if _, err := io.WriteString(out, enter); err != nil {
		return err
	}
	defer io.WriteString(out, leave)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		found, err := ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return err
		}
		lines := append(Lines(found, width, max(height-2, 1), time.Now(), bold), "", "q ends it")
		if _, err := io.WriteString(out, home+strings.Join(lines, clearTo+"\r\n")+clearTo+clear); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// waitForEnd reads keys until q or ctrl-C, or until the input ends.
func waitForEnd(in io.Reader) {
	keys := make([]byte, 64)
	for {
		n, err := in.Read(keys)
		if strings.ContainsAny(string(keys[:n]), "qQ\x03\x04") || err != nil {
			return
		}
	}
}
