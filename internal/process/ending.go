package process

import (
	"strconv"
	"strings"
)

// ExitLoop is the exit code of a program that would serve or start itself. It reports the loop to
// the program that started it.
const ExitLoop = 11

// endings are the exit codes of signals on every system that has them. The guard of a command
// reports a signal as 128 plus its number, as shells do.
var endings = map[int]string{
	126: "it cannot be run", 127: "the command was not found", 129: "its terminal was closed, SIGHUP", 130: "interrupted, SIGINT",
	132: "it crashed, SIGILL", 134: "it crashed, SIGABRT", 135: "it crashed, SIGBUS", 136: "it crashed, SIGFPE",
	137: "killed, SIGKILL: often by the system for lack of memory", 139: "it crashed, SIGSEGV", 143: "terminated, SIGTERM",
}

// Ending describes how a process ended, from the state of an [mcp.ExitError]: few readers recognize
// "exit status 137" as a signal.
func Ending(state string) string {
	if code, ok := ExitCode(state); ok && endings[code] != "" {
		return endings[code] + ", " + state
	}
	return state
}

// ExitCode parses the number in the state of a process, in the form of an [mcp.ExitError].
func ExitCode(state string) (code int, ok bool) {
	text, ok := strings.CutPrefix(state, "exit status ")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}
