// Package task reads the task of a run: the words of the command line, and standard input.
package task

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/attach"
	"github.com/patchbay-dev/patchbay/host/model"
)

// slowInput is the time without standard input after which Read says that it waits.
const slowInput = 3 * time.Second

// Example is a command with a task.
const Example = `patchbay run "list the tables" -s sqlite`

// Read returns the message for the model: the words of the command line, followed by standard input.
// note says what the person should know, such as that this takes long; it may be called on another goroutine.
func Read(ctx context.Context, words string, stdin io.Reader, m model.Info, note func(format string, args ...any)) (string, []model.Part, error) {
	slow := time.AfterFunc(slowInput, func() { note("waiting for the end of standard input; < /dev/null skips it") })
	defer slow.Stop()
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // a read cannot be interrupted: after ctrl-C it lives as long as the program
		data, err := arguments.ReadAll(stdin)
		done <- read{data, err}
	}()
	var in read
	select {
	case in = <-done:
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	if in.err != nil {
		return "", nil, fmt.Errorf("standard input: %w", in.err)
	}
	text := strings.TrimSpace(string(in.data))
	alone := words == ""
	switch {
	case text == "" && alone:
		return "", nil, advice.Usagef("missing task: standard input is empty").Hint(Example)
	case text == "":
		return words, nil, nil
	case utf8.ValidString(text) && alone:
		return "", []model.Part{{Text: text}}, nil // no person wrote it: mentions in it are not attached
	case utf8.ValidString(text):
		return words, []model.Part{{Text: "\n\n<stdin>\n" + text + "\n</stdin>"}}, nil
	}
	kind, _, _ := strings.Cut(http.DetectContentType(in.data), ";")
	switch {
	case alone:
		return "", nil, advice.Usagef("missing task: standard input is not text (%s)", kind)
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"), kind == "application/pdf":
		part, about := attach.Fit(ctx, model.Part{Media: &model.Media{MIME: kind, Data: in.data, Name: "stdin"}}, m)
		if about != "" {
			note("standard input is a file of type %s%s", kind, about)
		}
		return words, []model.Part{part}, nil
	}
	return "", nil, advice.Usagef("standard input is neither UTF-8 text nor a picture, sound or PDF")
}
