package terminal

import (
	"context"
	"log/slog"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Handler returns a handler that writes log records as lines of the talk.
func (t *Talk) Handler(level slog.Level) slog.Handler { return &logLines{talk: t, level: level} }

// logLines is a log handler for people:
//
//	patchbay: warning: shop: notifications dropped: the client is slow (count 3)
//
// The server comes first, an error follows the message, and everything else is in brackets.
type logLines struct {
	talk   *Talk
	level  slog.Level
	prefix string // of the groups
	server string
	err    string
	rest   []string
}

var _ slog.Handler = (*logLines)(nil)

func (l *logLines) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	line := *l
	line.rest = line.rest[:len(line.rest):len(line.rest)]
	r.Attrs(func(a slog.Attr) bool {
		line.add(a)
		return true
	})
	text := r.Message
	if line.server != "" {
		text = line.server + ": " + text
	}
	switch {
	case r.Level >= slog.LevelError:
		text = "error: " + text
	case r.Level >= slog.LevelWarn:
		text = "warning: " + text
	}
	if line.err != "" {
		text += ": " + line.err
	}
	if len(line.rest) > 0 {
		text += " (" + strings.Join(line.rest, ", ") + ")"
	}
	l.talk.Always("patchbay: " + screen.OneLine(text))
	return nil
}

func (l *logLines) add(a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		inner := *l
		if a.Key != "" {
			inner.prefix += a.Key + "."
		}
		for _, a := range value.Group() {
			inner.add(a)
		}
		l.server, l.err, l.rest = inner.server, inner.err, inner.rest
		return
	}
	switch text := screen.Clip(value.String()); {
	case text == "" && a.Key == "":
	case l.prefix == "" && a.Key == "server":
		l.server = text
	case l.prefix == "" && a.Key == "err":
		l.err = text
	default:
		l.rest = append(l.rest, l.prefix+a.Key+" "+text)
	}
}

func (l *logLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	with.rest = with.rest[:len(with.rest):len(with.rest)]
	for _, a := range attrs {
		with.add(a)
	}
	return &with
}

func (l *logLines) WithGroup(name string) slog.Handler {
	with := *l
	if name != "" {
		with.prefix += name + "."
	}
	return &with
}
