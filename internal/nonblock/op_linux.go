//go:build linux && !race

package nonblock

import (
	"sync"
	"syscall"
	"unsafe"
)

// most bounds one call in bytes, so that it does not take long. It is the capacity of a pipe.
const most = 64 << 10

// op makes calls of one kind, one at a time.
type op struct {
	mu   sync.Mutex
	raw  syscall.RawConn
	call func(fd uintptr) bool // made once, so that a call allocates nothing

	// Of the call that is being made.
	b  []byte
	n  int
	no syscall.Errno
}

// try makes the call. It reports false if the descriptor is not ready.
func (o *op) try(trap, fd uintptr) bool {
	for {
		n, _, no := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(o.b))), uintptr(len(o.b)))
		if o.n, o.no = int(n), no; no != 0 {
			o.n = 0
		}
		if no != syscall.EINTR {
			return no != syscall.EAGAIN
		}
	}
}

// newReader returns the op that reads; it waits until the descriptor is ready.
func newReader(raw syscall.RawConn) *op {
	o := &op{raw: raw}
	o.call = func(fd uintptr) bool { return o.try(syscall.SYS_READ, fd) }
	return o
}

// newWriter returns the op that writes what there is room for; it does not wait.
func newWriter(raw syscall.RawConn) *op {
	o := &op{raw: raw}
	o.call = func(fd uintptr) bool {
		o.try(syscall.SYS_WRITE, fd)
		return true
	}
	return o
}

// read reads. The error no is that of the system call, err that of the wait for it.
func (o *op) read(b []byte) (n int, no syscall.Errno, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b, o.n, o.no = b[:min(len(b), most)], 0, 0
	err = o.raw.Read(o.call)
	o.b = nil
	return o.n, o.no, err
}

// write writes, the rest by the function that is given. Then the error is that of the function.
func (o *op) write(b []byte, rest func(b []byte) (int, error)) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(b) > 0 && len(b) <= most {
		o.b, o.n = b, 0
		_ = o.raw.Write(o.call)
		o.b = nil
		if n = o.n; n == len(b) {
			return n, nil
		}
	}
	more, err := rest(b[n:])
	return n + more, err
}
