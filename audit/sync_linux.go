package audit

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// disk waits until lines are on disk. It asks the kernel (io_submit, since Linux 4.18) and waits for the answer
// as for that of a socket, since the Go runtime replaces a thread that waits in fdatasync, which costs more
// than the disk does. Where the kernel refuses, as in some sandboxes, a thread waits. The zero value is
// ready to use, by one goroutine at a time.
type disk struct {
	context uintptr                   // of the kernel
	events  *os.File                  // an eventfd; nil: there is none yet
	conn    syscall.RawConn           // of events
	look    func(events uintptr) bool // answered, made once
	file    *os.File                  // of the request
	request request
	answer  answer
	answers int  // that the last look has got
	blocked bool // the kernel refuses
}

// request is what io_submit takes: struct iocb. The kernel writes to its second member.
type request struct {
	_       uint64
	_       [2]uint32
	op      uint16
	_       int16
	file    uint32
	_       [4]uint64
	flags   uint32
	eventfd uint32
}

// answer is what io_getevents returns: struct io_event.
type answer struct {
	_      [2]uint64
	result int64 // 0, or the number of an error, below 0
	_      int64
}

const (
	opDatasync  = 3 // IOCB_CMD_FDSYNC
	withEventfd = 1 // IOCB_FLAG_RESFD
)

// sync waits until the content of a file is on disk.
func (d *disk) sync(f *os.File) error {
	if d.open() && d.start(f, false) {
		for {
			if there, err := d.wait(); there {
				return err
			}
			d.patient()
		}
	}
	return waitFor(f)
}

// waitFor waits in a thread until the content of a file is on disk.
func waitFor(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// open reports whether the kernel takes requests.
func (d *disk) open() bool {
	if d.blocked || d.events != nil {
		return !d.blocked
	}
	d.blocked = true
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return false
	}
	if _, _, number := syscall.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&d.context)), 0); number != 0 {
		unix.Close(fd)
		return false
	}
	d.events, d.look = os.NewFile(uintptr(fd), "eventfd"), d.answered
	if d.conn, err = d.events.SyscallConn(); err != nil {
		_ = d.close()
		return false
	}
	d.request.op, d.request.flags, d.request.eventfd = opDatasync, withEventfd, uint32(fd)
	d.blocked = false
	return true
}

// ready reports whether start may be called.
func (d *disk) ready() bool { return d.events != nil && !d.blocked }

// start makes the request for a file. If it reports true, wait must follow, and may follow hold. Its call and that of
// wait do not block, so the scheduler does not learn of them: otherwise each line would wake its monitor, see package
// nonblock. The answer to a request of a lone caller does not wake the poller.
func (d *disk) start(f *os.File, lone bool) bool {
	d.file, d.request.file, d.request.flags = f, uint32(f.Fd()), withEventfd
	if lone {
		d.request.flags = 0
	}
	list := [1]*request{&d.request}
	for {
		n, _, number := syscall.RawSyscall(unix.SYS_IO_SUBMIT, d.context, 1, uintptr(unsafe.Pointer(&list)))
		if number != unix.EINTR {
			return number == 0 && n == 1
		}
	}
}

// hold waits for the answer to a lone caller's request for holdTime. The thread keeps its place in the scheduler, which
// would look for other work on each core, find none, and do so again after the answer. Signals end the wait, such as
// that of the scheduler when it needs the thread. If hold reports false, wait must follow.
func (d *disk) hold() (there bool, err error) {
	most := unix.NsecToTimespec(int64(holdTime))
	n, _, number := syscall.RawSyscall6(unix.SYS_IO_GETEVENTS, d.context, 1, 1, uintptr(unsafe.Pointer(&d.answer)), uintptr(unsafe.Pointer(&most)), 0)
	if number != 0 || n != 1 {
		return false, nil
	}
	return true, d.outcome()
}

// wait waits for the answer to the request. If it reports false, another wait must follow.
func (d *disk) wait() (there bool, err error) {
	if d.request.flags != withEventfd {
		err = d.block()
	} else if err = d.conn.Read(d.look); errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	if err != nil || d.answers != 1 {
		return true, errors.Join(d.close(), waitFor(d.file)) // close waits for the request
	}
	return true, d.outcome()
}

// block waits in a thread for the answer to a lone caller's request.
func (d *disk) block() error {
	for {
		n, _, number := syscall.Syscall6(unix.SYS_IO_GETEVENTS, d.context, 1, 1, uintptr(unsafe.Pointer(&d.answer)), 0, 0)
		if d.answers = int(n); number == 0 {
			return nil
		} else if number != unix.EINTR {
			return number
		}
	}
}

// outcome returns the error of the answer.
func (d *disk) outcome() error {
	if d.answer.result < 0 {
		return os.NewSyscallError("fdatasync", syscall.Errno(-d.answer.result))
	}
	return nil
}

// answered takes the answer, and reports false if there is none yet. The eventfd is not read: each answer
// makes it ready once more.
func (d *disk) answered(uintptr) bool {
	for {
		n, _, number := syscall.RawSyscall6(unix.SYS_IO_GETEVENTS, d.context, 0, 1, uintptr(unsafe.Pointer(&d.answer)), uintptr(unsafe.Pointer(&noTime)), 0)
		if number != unix.EINTR {
			d.answers = int(n) // -1: an error
			return n != 0
		}
	}
}

// noTime is the time that a call waits.
var noTime unix.Timespec

// hurry makes wait report false soon. Any goroutine may call it while ready.
func hurry(events *os.File) { _ = events.SetReadDeadline(time.Unix(1, 0)) }

// patient undoes hurry.
func (d *disk) patient() { _ = d.events.SetReadDeadline(time.Time{}) }

// close gives back what the kernel keeps.
func (d *disk) close() error {
	if d.events == nil {
		return nil
	}
	_, _, number := syscall.Syscall(unix.SYS_IO_DESTROY, d.context, 0, 0)
	err := d.events.Close()
	*d = disk{blocked: true, file: d.file}
	if number != 0 {
		return os.NewSyscallError("io_destroy", number)
	}
	return err
}
