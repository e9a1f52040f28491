package stdio

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// Run runs a command that is not a server to its end, with the streams that cmd has. Processes that
// it leaves behind end with it. When ctx ends first, its process group is asked to terminate and
// then killed, and the error is the cause of ctx; else it is that of [exec.Cmd.Wait].
func Run(ctx context.Context, cmd *exec.Cmd) error {
	var g group
	if err := g.prepare(cmd); err != nil {
		return err
	}
	cmd.WaitDelay = lingering
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the process, which does not outlive Run
		runtime.LockOSThread() // as in Start
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			if err = g.started(cmd); err != nil {
				cmd.Process.Kill()
				cmd.Wait()
			}
		}
		if started <- err; err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	defer g.kill(cmd)
	select {
	case err := <-ended:
		if errors.Is(err, exec.ErrWaitDelay) { // a process that it left behind holds its streams
			return nil
		}
		return err
	case <-ctx.Done():
	}
	g.terminate(cmd)
	for _, grace := range []time.Duration{termGrace, killGrace} {
		select {
		case <-ended:
			return context.Cause(ctx)
		case <-time.After(grace):
			g.kill(cmd)
		}
	}
	return context.Cause(ctx)
}
