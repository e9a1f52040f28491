package main

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"

	"log/slog"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/mcp"
)

// What the verbs use at every turn has short names here; package screen says what it does.
var (
	visible  = screen.Visible
	oneLine  = screen.OneLine
	columns  = screen.Columns
	cut      = screen.Cut
	pad      = screen.Pad
	wrap     = screen.Wrap
	paint    = screen.Paint
	plain    = screen.Plain
	indented = screen.Indented
	bytesOf  = screen.Bytes

	shell      = screen.Shell
	quantity   = screen.Quantity
	clip       = screen.Clip
	lastLines  = screen.LastLines
	didYouMean = screen.DidYouMean
	shortTime  = screen.ShortTime
	age        = screen.Age
	about      = screen.About

	here     = entry.Here
	hereLine = entry.HereLine
	fileOf   = entry.File
	where    = entry.Where
	cutLast  = entry.CutLast
)

// levelName is the protocol's word for a log level.
func levelName(l slog.Level) string {
	names := []struct {
		from slog.Level
		name string
	}{
		{mcp.LevelEmergency, "emergency"}, {mcp.LevelAlert, "alert"}, {mcp.LevelCritical, "critical"},
		{slog.LevelError, "error"}, {slog.LevelWarn, "warning"}, {mcp.LevelNotice, "notice"}, {slog.LevelInfo, "info"},
	}
	for _, n := range names {
		if l >= n.from {
			return n.name
		}
	}
	return "debug"
}
