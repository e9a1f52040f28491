package interop

import "os/exec"

// ownGroup does nothing: Windows does not have such process groups.
func ownGroup(cmd *exec.Cmd) {}

// endGroup kills only cmd.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
