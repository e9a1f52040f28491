package level_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp/level"
)

func ExampleName() {
	fmt.Println(level.Name(slog.LevelWarn), level.Name(level.Critical))
	// Output: warning critical
}

func TestNames(t *testing.T) {
	levels := []struct {
		level slog.Level
		name  string
	}{
		{slog.LevelDebug, "debug"}, {slog.LevelInfo, "info"}, {level.Notice, "notice"}, {slog.LevelWarn, "warning"},
		{slog.LevelError, "error"}, {level.Critical, "critical"}, {level.Alert, "alert"}, {level.Emergency, "emergency"},
	}
	for i, l := range levels {
		if got := level.Name(l.level); got != l.name {
			t.Errorf("Name(%d) = %q, want %q", l.level, got, l.name)
		}
		if got, ok := level.Parse(l.name); got != l.level || !ok {
			t.Errorf("Parse(%q) = %d, %v; want %d", l.name, got, ok, l.level)
		}
		if i > 0 && levels[i-1].level >= l.level {
			t.Errorf("%s is not above %s", l.name, levels[i-1].name)
		}
	}
	for l, want := range map[slog.Level]string{slog.LevelDebug - 9: "debug", slog.LevelDebug + 1: "debug", slog.LevelWarn - 1: "notice", level.Emergency + 9: "emergency"} {
		if got := level.Name(l); got != want {
			t.Errorf("Name(%d) = %q, want %q", l, got, want)
		}
	}
	for _, name := range []string{"", "Info", "verbose"} {
		if got, ok := level.Parse(name); got != slog.LevelInfo || ok {
			t.Errorf("Parse(%q) = %d, %v; want %d, false", name, got, ok, slog.LevelInfo)
		}
	}
}
