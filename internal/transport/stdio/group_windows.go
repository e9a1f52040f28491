package stdio

import (
	"errors"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object: its processes end when the last handle to it is closed, at the latest
// when this process ends.
type group struct{ job windows.Handle }

func (*group) prepare(cmd *exec.Cmd) error {
	if err := batch(cmd); err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Ctrl-C at the console goes to this program and not to its servers, as with a process group on
	// Unix. The process is suspended until it is in the job, which its own processes join then.
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED
	return nil
}

var resumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

func (g *group) started(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		handleErr := cmd.Process.WithHandle(func(process uintptr) {
			if err = windows.AssignProcessToJobObject(job, windows.Handle(process)); err != nil {
				return
			}
			if status, _, _ := resumeProcess.Call(process); status != 0 {
				err = windows.NTStatus(status)
			}
		})
		err = errors.Join(err, handleErr)
	}
	if err != nil {
		windows.CloseHandle(job)
		return err
	}
	g.job = job
	return nil
}

// terminate sends Ctrl-Break, which ends most programs, or lets them clean up first. A process
// that does not share the console of this program does not get it; the next step is kill.
func (*group) terminate(cmd *exec.Cmd) {
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(cmd.Process.Pid))
}

func (g *group) kill(cmd *exec.Cmd) {
	if g.job != 0 {
		windows.TerminateJobObject(g.job, 1)
		windows.CloseHandle(g.job)
		g.job = 0
		return
	}
	cmd.Process.Kill()
}
