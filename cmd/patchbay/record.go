package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/trace"
)

// What is recorded with --trace, and what of it is a secret: package trace knows the
// names and forms that secrets have; the values that this program passes on, in the
// environment and headers of a server, are replaced wherever they come up.

// tape is the recording of a run.
type tape struct {
	*trace.Writer
	file io.Closer
}

// recorder returns what is to be told of the frames of a server: the recording of
// --trace, and a person who reads along with --verbose. It is nil if nobody is. List
// names the servers whose secrets may come up. The recording is opened by the first call.
func (a *app) recorder(list ...config.Server) (func(trace.Frame), error) {
	secrets := secretsOf(append(list[:len(list):len(list)], config.Server{Env: pairs(a.Env)}), a.Header)
	if a.Trace != "" && a.tape == nil {
		if err := a.openTape(secrets); err != nil {
			return nil, err
		}
	}
	if !a.Verbose {
		if a.tape == nil {
			return nil, nil
		}
		return a.tape.Record, nil
	}
	redactor := trace.NewRedactor(&trace.RedactorOptions{Values: secrets})
	return func(f trace.Frame) {
		if a.tape != nil {
			a.tape.Record(f)
		}
		if f.Kind != trace.KindMessage || len(f.Msg)+len(f.Raw) == 0 {
			return
		}
		arrow := "←"
		if f.Dir == trace.Out {
			arrow = "→"
		}
		f = redactor.Frame(f)
		a.talk.always(a.talk.paint(arrow, "2") + " " + oneLine(string(f.Msg)+string(f.Raw)))
	}, nil
}

// openTape opens the recording. It is closed when the program ends, after everything
// that is recorded.
func (a *app) openTape(secrets []string) error {
	var sink io.Writer = talkLines{a.talk}
	var file io.Closer = nopFile{}
	if a.Trace != "-" {
		f, err := os.OpenFile(a.Trace, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return usagef("--trace: %w", err)
		}
		sink, file = f, f
	}
	a.tape = &tape{trace.NewWriter(sink, &trace.WriterOptions{
		MaxFrame: a.TraceMax,
		Redactor: trace.NewRedactor(&trace.RedactorOptions{Values: secrets}),
		OnFault:  func(err error) { a.talk.always("patchbay: warning: --trace " + visible(err.Error())) },
	}), file}
	a.atEnd = slices.Insert(a.atEnd, 0, func() {
		err := a.tape.Close()
		if errors.Is(err, trace.ErrDropped) {
			a.talk.always("patchbay: warning: --trace " + a.Trace + " is not complete: " + visible(err.Error()))
			err = nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			a.talk.always("patchbay: warning: --trace: " + visible(err.Error()))
		}
	})
	return nil
}

// nopFile is closed by others.
type nopFile struct{}

func (nopFile) Close() error { return nil }

// talkLines writes whole lines to standard error, byte by byte.
type talkLines struct{ t *talk }

func (w talkLines) Write(p []byte) (int, error) {
	w.t.always(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// secretsOf returns the values that servers, and the flags of this program, are given
// as secrets.
func secretsOf(list []config.Server, header []string) []string {
	var out []string
	fromHeader := func(value string) {
		value = strings.TrimSpace(value)
		out = append(out, value)
		if _, token, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
			out = append(out, token)
		}
	}
	for _, h := range header {
		if name, value, ok := strings.Cut(h, ":"); ok && secretHeader(name) {
			fromHeader(value)
		}
	}
	for _, s := range list {
		out = append(out, s.Secrets()...)
		for name, value := range s.Env {
			if secretName(name) {
				out = append(out, value)
			}
		}
		for name, value := range s.Headers {
			if secretHeader(name) {
				fromHeader(value)
			}
		}
	}
	return out
}

// pairs are the variables of --env.
func pairs(list []string) map[string]string {
	out := map[string]string{}
	for _, e := range list {
		name, value, _ := strings.Cut(e, "=")
		out[name] = value
	}
	return out
}

// secretHeader tells whether a header is one of credentials. Those of the protocol and
// of HTTP itself are not.
func secretHeader(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == "cookie" || strings.Contains(name, "auth") || secretName(name)
}

// secretName tells whether a variable is named as secrets are: too often rather than
// not often enough, as it is only its value that is replaced.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"token", "secret", "passw", "passphrase", "key", "credential", "auth", "pwd", "cookie", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
