package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoterminal returns both ends of a terminal.
func pseudoterminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudoterminals here: ", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	go io.Copy(io.Discard, person) // the echo
	return person, program
}

// A paste that is longer than the buffer of a terminal arrives in pieces, some of them after input
// was dropped. None of its lines answers a question about what is started; a line after it does.
func TestLongPasteIsNoAnswer(t *testing.T) {
	person, program := pseudoterminal(t)
	k := NewKeyboard(program)
	pasted := make(chan struct{})
	go func() {
		defer close(pasted)
		person.Write(bytes.Repeat([]byte("y\n"), 100_000))
	}()
	if dropped, err := k.Settle(t.Context()); !dropped || err != nil {
		t.Errorf("settle: dropped %t, %v", dropped, err)
	}
	<-pasted
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if text, err := k.Line(soon); err == nil {
		t.Errorf("%q of the paste is an answer", text)
	}
	person.Write([]byte("yes\n"))
	if text, err := k.Line(t.Context()); text != "yes" || err != nil {
		t.Errorf("line() = %q, %v after the paste", text, err)
	}
}

// Input that never pauses, such as that of "yes", gets no question.
func TestInputNeverPauses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	t.Parallel()
	person, program := pseudoterminal(t)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
				person.Write([]byte("y\n"))
			}
		}
	}()
	if _, err := NewKeyboard(program).Settle(t.Context()); !errors.Is(err, ErrNeverQuiet) {
		t.Errorf("settle: %v", err)
	}
}
