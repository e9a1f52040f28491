package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

func init() { skewClock = skew }

// skew makes the wall clock of this process differ from that of the machine. Go asks a function of the kernel for the time, and keeps its
// address in a variable; another function is put there, which calls that one and adds to the seconds of CLOCK_REALTIME.
func skew(by time.Duration) error {
	variable, err := clockVariable()
	if err != nil {
		return err
	}
	code := []byte{0x57, 0x56, 0x50} // push rdi, rsi, rax
	code = append(code, 0x48, 0xb8)  // mov rax, the function of the kernel
	code = binary.LittleEndian.AppendUint64(code, uint64(*variable))
	code = append(code, 0xff, 0xd0)       // call rax
	code = append(code, 0x5a, 0x5e, 0x5f) // pop rdx, rsi, rdi
	code = append(code, 0x85, 0xff)       // test edi, edi: CLOCK_REALTIME is 0
	code = append(code, 0x75, 13)         // jne to the end
	code = append(code, 0x48, 0xb9)       // mov rcx, the seconds
	code = binary.LittleEndian.AppendUint64(code, uint64(by/time.Second))
	code = append(code, 0x48, 0x01, 0x0e) // add [rsi], rcx
	code = append(code, 0xc3)             // ret
	page, err := syscall.Mmap(-1, 0, len(code), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	if err := syscall.Mprotect(page, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		return err
	}
	*variable = uintptr(unsafe.Pointer(&page[0]))
	return nil
}

// clockVariable returns where runtime.vdsoClockgettimeSym is, which no other package can name: time.Now calls time.runtimeNow, which calls
// time.now, which begins with it.
func clockVariable() (*uintptr, error) {
	pc := reflect.ValueOf(time.Now).Pointer()
	for _, name := range []string{"time.runtimeNow", "time.now"} {
		if pc = called(pc, name); pc == 0 {
			return nil, fmt.Errorf("no call of %s: %s has another time.Now", name, runtime.Version())
		}
	}
	code := machineCode(pc, 200)
	at := bytes.Index(code, []byte{0x48, 0x83, 0xf8, 0}) // cmp rax, 0
	if at < 7 || !bytes.Equal(code[at-7:at-4], []byte{0x48, 0x8b, 0x05}) {
		return nil, fmt.Errorf("time.now of %s does not load an address and compare it", runtime.Version())
	}
	address := pc + uintptr(at) + relative(code[at-4:])
	variable := *(**uintptr)(unsafe.Pointer(&address))
	if *variable == 0 {
		return nil, errors.New("the kernel has no function for the time")
	}
	return variable, nil
}

// called returns where the function with a name begins that the one at pc calls, 0 if it calls none.
func called(pc uintptr, name string) uintptr {
	code := machineCode(pc, 400)
	for i := range len(code) - 5 {
		if code[i] != 0xe8 { // call
			continue
		}
		to := pc + uintptr(i) + 5 + relative(code[i+1:])
		if f := runtime.FuncForPC(to); f != nil && f.Name() == name && f.Entry() == to {
			return to
		}
	}
	return 0
}

// machineCode is the bytes at an address.
func machineCode(at uintptr, n int) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n) }

// relative is a distance in code.
func relative(b []byte) uintptr { return uintptr(int64(int32(binary.LittleEndian.Uint32(b)))) }
