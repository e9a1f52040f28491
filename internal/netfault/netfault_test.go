package netfault

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/freeport"
)

// The words are the same on every system.
func TestWords(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	free, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	_, refused := net.Dial("tcp", free)
	_, inUse := net.Listen("tcp", taken)
	denied := func(no syscall.Errno) error {
		return &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", no)}
	}
	_, foreign := net.Listen("tcp", "192.0.2.1:0")
	for _, tt := range []struct{ got, want string }{
		{Words(refused), free + ": connection refused"},
		{Listen(taken, inUse).Error(), "cannot listen on " + taken + ": another program listens there"},
		{Listen("127.0.0.1:80", denied(syscall.EACCES)).Error(), "cannot listen on 127.0.0.1:80: not allowed; ports below 1024 need special privileges"},
		// Windows has no privileged ports.
		{Listen("127.0.0.1:80", denied(10013)).Error(), "cannot listen on 127.0.0.1:80: Windows has reserved the port, or another program uses it alone; use another port"},
		{Listen("192.0.2.1:0", foreign).Error(), "cannot listen on 192.0.2.1:0: this machine does not have that address"},
	} {
		if strings.TrimSpace(tt.got) != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
