//go:build linux

package check

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The arguments and files that the chart gives to its container make a gateway that calls a built-in server and one of Node. The container has a read-only root and
// the files of this machine in place of those of deploy/Containerfile; what the chart mounts is laid out as Kubernetes does.
func TestChartServes(t *testing.T) {
	r, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	program, keys := filepath.Join(work, "patchbay"), filepath.Join(work, "keys.jsonl")
	run(t, "go", "-C", "../..", "build", "-o", program, "./cmd/patchbay")
	key := run(t, program, "token", "key", "alice", "--file", keys)
	key, _, _ = strings.Cut(key, "\n")
	entry, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	secret := mounted(t, map[string]string{"keys.jsonl": string(entry)})
	address, metrics := free(t), free(t)
	files := map[string]string{}
	for name, text := range r.config.Data { // a test listens for this machine alone
		files[name] = strings.NewReplacer("0.0.0.0:7420", address, "0.0.0.0:9090", metrics).Replace(text)
	}
	if !strings.Contains(files["gateway.yaml"], address) || !strings.Contains(files["gateway.yaml"], metrics) {
		t.Fatalf("gateway.yaml does not listen at 0.0.0.0:7420 and 0.0.0.0:9090:\n%s", r.config.Data["gateway.yaml"])
	}
	config := mounted(t, files)
	modules, err := filepath.EvalSymlinks("../../interop/npm/node_modules")
	if err != nil {
		t.Fatalf("%v: run npm ci --prefix interop/npm", err)
	}
	box := r.deployment.Spec.Template.Spec.Containers[0]
	args := []string{"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", program, "/opt/patchbay", "--ro-bind", modules, "/opt/node_modules", "--proc", "/proc", "--dev", "/dev",
		"--unshare-user", "--unshare-pid", "--uid", "65532", "--gid", "65532", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"}
	for _, e := range box.Env {
		args = append(args, "--setenv", e.Name, e.Value)
	}
	for _, m := range box.VolumeMounts {
		switch m.Name {
		case "config":
			args = append(args, "--ro-bind", config, m.MountPath)
		case "secret":
			args = append(args, "--ro-bind", secret, m.MountPath)
		default:
			args = append(args, "--tmpfs", m.MountPath)
		}
	}
	args = append(args, "--remount-ro", "/", "--chdir", box.WorkingDir, "/opt/patchbay")
	var said bytes.Buffer
	up := exec.Command("bwrap", append(args, box.Args...)...)
	up.Stdout, up.Stderr, up.WaitDelay = &said, &said, 10*time.Second
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	url := "http://" + address
	for status := 0; status != http.StatusOK; {
		if res, err := http.Get(url + box.ReadinessProbe.HTTPGet.Path); err == nil {
			status = res.StatusCode
			res.Body.Close()
		}
		select {
		case <-ended:
			t.Fatalf("the gateway has ended:\n%s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	defer func() {
		if err := syscall.Kill(-up.Process.Pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	for tool, want := range map[string]string{"everything_add a=2 b=3": "5", "node_echo message=hello": "Echo: hello"} {
		out := run(t, program, append(append([]string{"call"}, strings.Fields(tool)...), "-s", url+"/mcp", "--header", "Authorization: Bearer "+key)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s: %s", tool, out)
		}
	}
	res, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || !bytes.Contains(text, []byte("patchbay_build_info")) {
		t.Errorf("metrics: %v\n%s", err, text)
	}
}

// mounted returns a folder with files, as Kubernetes mounts a Secret or a ConfigMap: links into a folder that it replaces as a whole.
func mounted(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..2026"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..2026", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "..2026", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, said.Bytes())
	}
	return string(out)
}

// free returns an address on loopback that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
