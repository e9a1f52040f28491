package doctor

import (
	"cmp"
	"os/exec"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/process"
)

// Hook returns the exam of a hook: its command exists. It is not run.
func Hook(h config.Hook) *Exam {
	e := &Exam{Server: config.Server{Name: entry.HookName(&h), Command: h.Command, Args: h.Args, Env: h.Env, Dir: h.Dir, Source: h.Source}, idle: true}
	e.OK("config", entry.HereLine(h.Source))
	if err := process.Check(e.Server); err != nil {
		e.Fail("command", err.Error(), "correct \"command\" of the hook: calls are refused without it")
		return e
	}
	path, _ := exec.LookPath(h.Command) // fails if it is in the PATH of the hook alone
	e.OK("command", cmp.Or(path, h.Command))
	return e
}
