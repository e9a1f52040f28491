package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe without a reader is an error at once that says what to do. The result of a call is
// printed in place of its file.
func TestPipeWithoutReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"tools -s everything --trace":              "",
		"serve everything --trace":                 "",
		"up --stdio -s everything --trace":         "",
		"call everything/echo message=hi -o":       "hi\n",
		"read test://static-text -s everything -o": "[resource test://static-text]\nThis is the content of the static text resource.\n",
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), append(strings.Fields(args), pipe), strings.NewReader(""), &out, &said)
		trace := strings.HasSuffix(args, "--trace")
		if code != map[bool]int{true: exitUsage, false: exitLocal}[trace] || out.String() != want || !strings.Contains(said.String(), "open "+pipe+": nobody reads this pipe; start its reader first\n") {
			t.Errorf("patchbay %s = %d\n%s\n%s", args, code, out.String(), said.String())
		}
		if trace && !strings.Contains(said.String(), " --trace -\n") {
			t.Errorf("patchbay %s has no hint: %s", args, said.String())
		}
	}
}

// A named pipe with a reader gets the recording.
func TestTraceIntoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"call", "everything/echo", "message=hi", "--trace", pipe}, strings.NewReader(""), &out, &said); code != exitOK {
		t.Fatalf("patchbay call = %d %s", code, said.String())
	}
	got := make([]byte, 64<<10)
	n, err := r.Read(got)
	if !bytes.Contains(got[:n], []byte(`"method":"tools/call"`)) {
		t.Errorf("the pipe has %s, %v", got[:n], err)
	}
}

// Over stdio, neither a recording nor a log is mixed into the stream of the client, under any name of
// standard output. Other verbs may write there.
func TestStandardOutputOverStdio(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out")
	start := func(args, path string) (code int, out, said string) {
		cmd := exec.Command(self, append(strings.Fields(args), path)...)
		cmd.Env = append(os.Environ(), testRun+"=patchbay")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if path == file {
			if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cmd.Stdout = f
		}
		cmd.Run() // the exit code says it
		if path == file {
			content, err := os.ReadFile(file)
			if err != nil || string(content) != "kept" {
				t.Errorf("patchbay %s %s: the file has %q, %v", args, path, content, err)
			}
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	for _, verb := range []string{"serve everything", "up --stdio -s everything", "bridge --stdio -s everything"} {
		for _, flag := range []string{"--trace", "--log"} {
			for _, path := range []string{"/dev/stdout", file} {
				code, out, said := start(verb+" "+flag, path)
				if want := flag + ": " + path + " is standard output, which belongs to the client over stdio\n"; code != exitUsage || out != "" || !strings.Contains(said, want) || !strings.Contains(said, flag+" -") {
					t.Errorf("patchbay %s %s %s = %d %q %s", verb, flag, path, code, out, said)
				}
			}
		}
	}
	if code, out, said := start("tools -s everything --trace", "/dev/stdout"); code != exitOK || !strings.Contains(out, `"method":"tools/list"`) {
		t.Errorf("patchbay tools --trace /dev/stdout = %d %q %s", code, out, said)
	}
}

// A file that is standard output keeps what it has, and gets the result after it.
func TestSaveToStandardOutput(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out")
	for i, path := range []string{"/dev/stdout", file} {
		if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := exec.Command(self, "call", "everything/echo", "message=hi", "-o", path)
		cmd.Env = append(os.Environ(), testRun+"=patchbay")
		cmd.Stdout = f
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "before\nhi" {
			t.Errorf("%d: the file has %q, %v", i, got, err)
		}
	}
}
