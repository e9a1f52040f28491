package hosts

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// On Windows, npx and other commands that npm installs are scripts for cmd.exe. Claude Code starts
// programs only, so its file needs "cmd /c npx"; Patchbay finds and starts such scripts by itself.

// isScript reports whether a command is a script for cmd.exe on Windows.
func isScript(command string) bool {
	command = strings.ToLower(command)
	return slices.Contains([]string{"npx", "npm", "pnpm", "pnpx", "yarn"}, command) || strings.HasSuffix(command, ".cmd") || strings.HasSuffix(command, ".bat")
}

// special are the characters that cmd.exe changes or interprets in arguments.
const special = "%&|<>^!\"\r\n"

// giveCmd lets cmd.exe start a script.
func giveCmd(o *object, note func(string)) {
	command := o.text("command")
	if !isScript(command) {
		return
	}
	words := []string{"/c", command}
	for raw := range jsonx.Elements(o.get("args")) {
		word, err := jsonx.Unquote(raw)
		if err != nil {
			return // the host reports it
		}
		words = append(words, word)
	}
	if strings.ContainsAny(strings.Join(words, ""), special) {
		note(`Claude Code on Windows starts it with "cmd /c", but cmd.exe interprets characters such as % and & in its arguments; put the values into "env"`)
		return
	}
	raw, err := json.Marshal(words)
	if err != nil {
		return // strings cannot fail
	}
	o.setText("command", "cmd")
	o.set("args", raw)
}

// takeCmd undoes giveCmd.
func takeCmd(o *object, _ func(string)) {
	if command := strings.ToLower(o.text("command")); command != "cmd" && command != "cmd.exe" {
		return
	}
	words := slices.Collect(jsonx.Elements(o.get("args")))
	if len(words) < 2 || !strings.EqualFold(string(words[0]), `"/c"`) {
		return
	}
	command, err := jsonx.Unquote(words[1])
	if err != nil || !isScript(command) {
		return
	}
	raw := []byte{'['}
	for i, w := range words[2:] {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, w...)
	}
	o.setText("command", command)
	o.set("args", append(raw, ']'))
}
