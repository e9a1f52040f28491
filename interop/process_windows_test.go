package interop

import "os/exec"

// ownGroup does nothing: Windows has no process groups of this kind.
func ownGroup(cmd *exec.Cmd) {}

// endGroup kills cmd alone.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
