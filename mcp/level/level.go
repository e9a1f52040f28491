// Package level has the log levels of MCP that log/slog lacks, and the names that all levels have in
// the protocol. They are for mcp.Log and mcp.Client.LogLevel, beside those of slog:
//
//	mcp.Log(ctx).Log(ctx, level.Notice, "the index is being rebuilt")
//	client := &mcp.Client{Name: "c", LogLevel: level.Notice}
package level

import "log/slog"

// Levels that slog has no name for. In ascending order the levels are [slog.LevelDebug],
// [slog.LevelInfo], Notice, [slog.LevelWarn], [slog.LevelError], Critical, Alert and Emergency.
//
// Specification: 2025-11-25, server/utilities/logging, Log Levels (RFC 5424).
const (
	Notice    = slog.LevelInfo + 2
	Critical  = slog.LevelError + 4
	Alert     = slog.LevelError + 8
	Emergency = slog.LevelError + 12
)

// named are the levels with their names, in ascending order.
var named = []struct {
	level slog.Level
	name  string
}{
	{slog.LevelDebug, "debug"},
	{slog.LevelInfo, "info"},
	{Notice, "notice"},
	{slog.LevelWarn, "warning"},
	{slog.LevelError, "error"},
	{Critical, "critical"},
	{Alert, "alert"},
	{Emergency, "emergency"},
}

// Name returns the protocol's name of a level, such as "warning". A level between two named ones has
// the name of the lower one, and a level below [slog.LevelDebug] is "debug".
func Name(l slog.Level) string {
	name := named[0].name
	for _, n := range named[1:] {
		if l < n.level {
			break
		}
		name = n.name
	}
	return name
}

// Parse returns the level with a name. If there is none, it returns [slog.LevelInfo] and false.
func Parse(name string) (l slog.Level, ok bool) {
	for _, n := range named {
		if n.name == name {
			return n.level, true
		}
	}
	return slog.LevelInfo, false
}
