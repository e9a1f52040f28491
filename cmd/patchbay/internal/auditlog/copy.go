package auditlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"

	"github.com/patchbay-dev/patchbay/audit"
)

// Copy says which lines to copy, and where to. Its fields are flags.
type Copy struct {
	Lines
	To   string `placeholder:"FILE" help:"Write the lines into this new file; -: standard output."`
	OTLP string `name:"otlp" placeholder:"URL" help:"Send the lines to this collector, over HTTP."`
}

// Check returns a [BadFlag] if the flags do not name one place to copy to.
func (c *Copy) Check() error {
	u, err := url.Parse(c.OTLP)
	switch {
	case (c.To == "") == (c.OTLP == ""):
		return BadFlag{errors.New("give either --to FILE or --otlp URL")}
	case c.OTLP != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return BadFlag{fmt.Errorf("--otlp %s is not an http or https URL such as http://localhost:4318", c.OTLP)}
	}
	return nil
}

// Run copies the selected lines of a log as they stand in it, checkpoints too, and returns their number. The header
// is for the collector.
func (c *Copy) Run(ctx context.Context, l *Log, header http.Header, stdout io.Writer) (n int, err error) {
	l.Checkpoints = true
	switch c.To {
	case "":
		return (&audit.OTLP{URL: c.OTLP, Header: header}).Export(ctx, l.All())
	case "-":
		return l.write(ctx, stdout)
	}
	f, err := os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, BadFlag{fmt.Errorf("--to %s: the file exists; move it away, or name another", c.To)}
	}
	if err != nil {
		return 0, BadFlag{fmt.Errorf("--to: %w", err)}
	}
	n, err = l.write(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(c.To))
	}
	return n, nil
}

// write writes the selected lines.
func (l *Log) write(ctx context.Context, w io.Writer) (n int, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	for e, err := range l.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return n, err
		}
		if _, err := out.Write(append(e.Line(), '\n')); err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}
