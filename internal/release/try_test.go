//go:build linux

package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this file try what a release has made, as people install it. PATCHBAY_RELEASE is its folder; .ci/long sets it, and
// installs the tools of distributions.

// made returns the one file of the release that matches a pattern.
func made(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("PATCHBAY_RELEASE")
	if dir == "" {
		t.Skip("PATCHBAY_RELEASE names no folder with a release")
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: %q, %v", pattern, dir, found, err)
	}
	return found[0]
}

// boxed returns a command in a container without other files than those of root, as a user who may write to /tmp only.
func boxed(root string, args ...string) *exec.Cmd {
	cmd := exec.Command("bwrap", append([]string{"--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-user", "--unshare-pid",
		"--uid", "65532", "--gid", "65532", "--clearenv", "--setenv", "HOME", "/tmp", "--setenv", "PATH", "/usr/bin:/", "--chdir", "/tmp", "--die-with-parent"}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// mountPoints makes the folders that a container runtime mounts.
func mountPoints(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// worksIn runs the installed program, which must know its commit and call a tool. For arm64 QEMU runs it.
func worksIn(t *testing.T, root, program, arch string) {
	t.Helper()
	mountPoints(t, root)
	run := []string{program}
	if arch == "arm64" {
		copyFile(t, lookPath(t, "qemu-aarch64-static"), filepath.Join(root, "qemu"))
		run = []string{"/qemu", program}
	}
	info, err := buildinfo.ReadFile(filepath.Join(root, program))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	for _, try := range []struct {
		args []string
		want string
	}{
		{[]string{"version"}, "(" + info.Settings[at].Value[:12]},
		{[]string{"version"}, ", linux/" + arch},
		{[]string{"call", "add", "a=2", "b=3", "-s", "everything"}, `{"sum":5}`},
	} {
		out, err := boxed(root, append(run, try.args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), try.want) {
			t.Errorf("%s %q: %v, want %q in\n%s", program, try.args, err, try.want, out)
		}
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

var architectures = []string{"amd64", "arm64"}

// A download has at most 20 MB, except the image and the packages for npm, of which each system takes one part.
func TestDownloadsAreSmall(t *testing.T) {
	files, err := os.ReadDir(filepath.Dir(made(t, "SHA256SUMS")))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		limit := int64(20_000_000)
		if strings.HasSuffix(f.Name(), "_image.tar") {
			limit *= 2 // two architectures, of which one is pulled
		}
		if info.Size() > limit {
			t.Errorf("%s has %d bytes, more than %d", f.Name(), info.Size(), limit)
		}
	}
}

func TestArchiveRuns(t *testing.T) {
	for _, arch := range architectures {
		root := t.TempDir()
		command(t, "tar", "-xzf", made(t, "patchbay_*_linux_"+arch+".tar.gz"), "-C", root)
		worksIn(t, root, "/patchbay", arch)
		present(t, root, "LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md", "man/patchbay.1", "completions/patchbay.bash", "systemd/patchbay.service", "systemd/user/patchbay.socket")
	}
}

func present(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The programs for macOS cannot run here; they are what they should be.
func TestArchiveForMacOS(t *testing.T) {
	for _, arch := range architectures {
		root := t.TempDir()
		command(t, "tar", "-xzf", made(t, "patchbay_*_darwin_"+arch+".tar.gz"), "-C", root)
		info, err := buildinfo.ReadFile(filepath.Join(root, "patchbay"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []debug.BuildSetting{{Key: "GOOS", Value: "darwin"}, {Key: "GOARCH", Value: arch}, {Key: "CGO_ENABLED", Value: "0"}} {
			if !slices.Contains(info.Settings, want) {
				t.Errorf("%s: no %v", arch, want)
			}
		}
	}
}

// The archive for Windows runs under Wine. That for arm64 has the same files.
func TestArchiveForWindows(t *testing.T) {
	for _, arch := range architectures {
		root := t.TempDir()
		z, err := zip.OpenReader(made(t, "patchbay_*_windows_"+arch+".zip"))
		if err == nil {
			err = os.CopyFS(root, z)
			z.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		present(t, root, "patchbay.exe", "LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md")
		if arch != "amd64" {
			continue
		}
		wine, err := filepath.Abs(filepath.Join("..", "..", ".ci", "wine"))
		if err != nil {
			t.Fatal(err)
		}
		if out := command(t, wine, filepath.Join(root, "patchbay.exe"), "version"); !strings.Contains(out, "windows/amd64") {
			t.Error(out)
		}
		if out := command(t, wine, filepath.Join(root, "patchbay.exe"), "call", "add", "a=2", "b=3", "-s", "everything"); strings.TrimSpace(out) != `{"sum":5}` {
			t.Error(out)
		}
	}
}

// dpkg installs the package in an empty root, where the program calls a tool, and removes it again. Configuration stays.
func TestDeb(t *testing.T) {
	for _, arch := range architectures {
		file := made(t, "patchbay_*_"+arch+".deb")
		root := t.TempDir()
		for _, name := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc/patchbay"} {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range map[string]string{"var/lib/dpkg/status": "", "etc/patchbay/mcp.json": "{}\n"} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		dpkg := []string{"--root=" + root, "--force-architecture", "--force-not-root", "--log=" + os.DevNull}
		command(t, "dpkg", append(dpkg, "--install", file)...)
		worksIn(t, root, "/usr/bin/patchbay", arch)
		present(t, root, installedFiles...)
		present(t, root, units...)
		present(t, root, "usr/share/doc/patchbay/copyright")
		command(t, "dpkg", append(dpkg, "--audit")...)
		systemd(t, root)
		command(t, "dpkg", append(dpkg, "--install", file)...) // as an upgrade does
		present(t, root, "etc/patchbay/mcp.json")
		command(t, "dpkg", append(dpkg, "--purge", "patchbay")...)
		if _, err := os.Stat(filepath.Join(root, "usr/bin/patchbay")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after dpkg --purge: %v", err)
		}
		present(t, root, "etc/patchbay/mcp.json")
	}
	if out := command(t, "lintian", "--allow-root", "--fail-on", "error", made(t, "patchbay_*_amd64.deb")); strings.Contains(out, "E: ") {
		t.Error(out)
	}
}

// units are those of systemd, of the machine and of one person.
var units = []string{"usr/lib/systemd/system/patchbay.service", "usr/lib/systemd/system/patchbay.socket", "usr/lib/systemd/user/patchbay.service", "usr/lib/systemd/user/patchbay.socket"}

// systemd sees that the units are right, and that the service has few rights.
func systemd(t *testing.T, root string) {
	t.Helper()
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	if err != nil || len(targets) == 0 {
		t.Fatalf("systemd is not installed: %v", err)
	}
	for _, path := range targets {
		copyFile(t, path, filepath.Join(root, path))
	}
	out := command(t, "systemd-analyze", "verify", "--man=no", "--root="+root, "patchbay.service", "patchbay.socket")
	out += command(t, "systemd-analyze", "verify", "--man=no", filepath.Join(root, "usr/lib/systemd/user/patchbay.socket"))
	if strings.Contains(out, "patchbay.socket:") { // a line that systemd ignores
		t.Error(out)
	}
	command(t, "systemd-analyze", "security", "--offline=yes", "--root="+root, "--threshold=20", "patchbay.service") // 2.0
}

// installedFiles are in each package.
var installedFiles = []string{"usr/share/man/man1/patchbay-up.1.gz", "usr/share/bash-completion/completions/patchbay", "usr/share/doc/patchbay/THIRD_PARTY_LICENSES", "usr/share/doc/patchbay/README.md"}

// rpm installs the package in an empty root, where the program calls a tool, and removes it again.
func TestRPM(t *testing.T) {
	for _, arch := range architectures {
		file := made(t, "patchbay_*_"+arch+".rpm")
		if out := command(t, "rpm", "-K", file); !strings.Contains(out, "digests OK") {
			t.Error(out)
		}
		root := t.TempDir()
		rpm := []string{"--root", root, "--force-debian"}
		command(t, "rpm", append(rpm, "-i", "--ignorearch", file)...)
		worksIn(t, root, "/usr/bin/patchbay", arch)
		present(t, root, installedFiles...)
		present(t, root, units...)
		if out := command(t, "rpm", append(rpm, "-V", "patchbay")...); out != "" {
			t.Error(out)
		}
		command(t, "rpm", append(rpm, "-e", "patchbay")...)
		if _, err := os.Stat(filepath.Join(root, "usr/bin/patchbay")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after rpm -e: %v", err)
		}
	}
	out, err := exec.Command("rpmlint", made(t, "patchbay_*_amd64.rpm")).CombinedOutput()
	if !strings.Contains(string(out), "1 packages and 0 specfiles checked") {
		t.Fatalf("rpmlint: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		// A signature needs the key of the maintainers. rpmlint takes programs of Go for texts.
		if strings.Contains(line, ": E: ") && !strings.Contains(line, "no-signature") && !strings.Contains(line, "no-binary") {
			t.Error(line)
		}
	}
}

// Debian has no apk, so this unpacks the package as apk does: two gzip streams, of which the first has the sum of the second.
func TestAPK(t *testing.T) {
	for _, arch := range architectures {
		content, err := os.ReadFile(made(t, "patchbay_*_"+arch+".apk"))
		if err != nil {
			t.Fatal(err)
		}
		from := bytes.NewReader(content)
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		control, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		data := content[len(content)-from.Len():]
		info := map[string]string{}
		files := tar.NewReader(bytes.NewReader(control))
		if h, err := files.Next(); err != nil || h.Name != ".PKGINFO" {
			t.Fatalf("the first file: %v, %v", h, err)
		}
		for lines := bufio.NewScanner(files); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), " = "); ok {
				info[name] = value
			}
		}
		sum := sha256.Sum256(data)
		if want := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]; info["arch"] != want || info["datahash"] != hex.EncodeToString(sum[:]) || info["pkgname"] != "patchbay" {
			t.Errorf(".PKGINFO of %s: %v; the sum is %x", arch, info, sum)
		}
		root, all := t.TempDir(), filepath.Join(t.TempDir(), "data.tar.gz")
		if err := os.WriteFile(all, data, 0o644); err != nil {
			t.Fatal(err)
		}
		command(t, "tar", "-xzf", all, "-C", root)
		worksIn(t, root, "/usr/bin/patchbay", arch)
		present(t, root, installedFiles...)
	}
}

// npm installs the package with the one for this system, and npx runs it; without that one the launcher says so. A signal reaches
// the program.
func TestNPM(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("npm_config_cache", filepath.Join(t.TempDir(), "npm"))
	launcher, program := made(t, "npm-patchbay-mcp-*.tgz"), made(t, "npm-patchbay-linux-x64-*.tgz")
	install := func(files ...string) {
		command(t, "npm", append([]string{"install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"}, files...)...)
	}
	install(launcher)
	out, err := exec.Command("npx", "--no-install", "patchbay-mcp", "version").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the package @patchbay/linux-x64 is not installed") {
		t.Errorf("without the package of the system: %v\n%s", err, out)
	}
	install(launcher, program)
	if out := command(t, "npx", "--no-install", "patchbay-mcp", "version"); !strings.Contains(out, "linux/amd64") {
		t.Error(out)
	}
	if out := command(t, "npx", "--no-install", "patchbay", "call", "add", "a=2", "b=3", "-s", "everything"); strings.TrimSpace(out) != `{"sum":5}` {
		t.Error(out)
	}
	for name, want := range map[string][]string{launcher: {"bin/patchbay.js"}, program: {"bin/patchbay"}} {
		var packed []struct {
			Files []struct {
				Path string
				Mode int
			}
		}
		out, err := exec.Command("npm", "pack", "--dry-run", "--json", "--offline", name).Output()
		if err == nil {
			err = json.Unmarshal(out, &packed)
		}
		if err != nil || len(packed) != 1 {
			t.Fatalf("npm pack %s: %v\n%s", name, err, out)
		}
		for _, path := range append(want, "package.json", "LICENSE", "THIRD_PARTY_LICENSES", "README.md") {
			if !slices.ContainsFunc(packed[0].Files, func(f struct {
				Path string
				Mode int
			}) bool {
				return f.Path == path && (f.Mode&0o100 != 0) == strings.HasPrefix(path, "bin/")
			}) {
				t.Errorf("npm pack %s lacks %s, or its mode is wrong", filepath.Base(name), path)
			}
		}
	}
	address := free(t)
	up := exec.Command("node", "node_modules/patchbay-mcp/bin/patchbay.js", "up", "--http", address)
	up.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Process.Kill()
	ready(t, address)
	if err := up.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = up.Wait() // ends as the program ends
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the program goes on after the launcher has ended")
	}
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

// ready waits until /readyz answers 200.
func ready(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if res, err := http.Get("http://" + address + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatalf("/readyz of %s has not answered 200 in a minute", address)
}

// The layout of the image is valid for two tools. Unpacked and read-only, as its user, it calls a tool, serves, and refuses a
// command, which it does not have, in words.
func TestImage(t *testing.T) {
	work, file := t.TempDir(), made(t, "patchbay_*_image.tar")
	store := t.TempDir()
	_, version, _ := strings.Cut(strings.TrimSuffix(file, "_image.tar"), "patchbay_")
	loaded := command(t, "podman", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs", "load", "-i", file)
	if want := "Loaded image: " + published + ":" + version + "\n"; !strings.HasSuffix(loaded, want) {
		t.Errorf("podman load says\n%swant %s", loaded, want)
	}
	command(t, "tar", "-xf", file, "-C", work)
	for _, arch := range architectures {
		var config struct {
			Config struct {
				User       string
				Env        []string
				Entrypoint []string
			}
			Architecture string
		}
		out := command(t, "skopeo", "--override-arch", arch, "inspect", "--config", "--raw", "oci:"+work)
		if err := json.Unmarshal([]byte(out), &config); err != nil || config.Architecture != arch || config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{"/patchbay"}) {
			t.Fatalf("skopeo inspect for %s: %v\n%s", arch, err, out)
		}
		command(t, "skopeo", "--override-arch", arch, "copy", "-q", "oci:"+work, "oci:"+filepath.Join(work, arch)+":one") // reads all blobs and their digests
		bundle := filepath.Join(work, "bundle-"+arch)
		command(t, "umoci", "unpack", "--rootless", "--image", filepath.Join(work, arch)+":one", bundle)
		root := filepath.Join(bundle, "rootfs")
		worksIn(t, root, "/patchbay", arch)
		present(t, root, "etc/ssl/certs/ca-certificates.crt", "usr/share/doc/patchbay/THIRD_PARTY_LICENSES")
		if arch == "amd64" {
			serves(t, root, config.Config.Env)
		}
	}
}

func serves(t *testing.T, root string, env []string) {
	set := func(cmd *exec.Cmd) *exec.Cmd {
		at := slices.Index(cmd.Args, "--clearenv") + 1
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			cmd.Args = slices.Insert(cmd.Args, at, "--setenv", name, value)
		}
		return cmd
	}
	out, err := set(boxed(root, "/patchbay", "tools", "--", "npx", "-y", "@modelcontextprotocol/server-everything")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it has remote and built-in servers only") {
		t.Errorf("a command in the image: %v\n%s", err, out)
	}
	var times []time.Duration
	for range 5 {
		address := free(t)
		up := set(boxed(root, "/patchbay", "up", "--http", address))
		began := time.Now()
		if err := up.Start(); err != nil {
			t.Fatal(err)
		}
		ready(t, address)
		times = append(times, time.Since(began))
		if err := up.Process.Kill(); err != nil { // --die-with-parent and the namespace end the program
			t.Fatal(err)
		}
		_ = up.Wait()
	}
	slices.Sort(times)
	t.Logf("/readyz answers after %v", times)
	if limit := 100 * time.Millisecond; times[0] > limit && !busy() {
		t.Errorf("/readyz answers after %v at best, more than %v", times[0], limit)
	}
}

// busy reports whether other processes leave no core to a test that measures time.
func busy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	var load float64
	if _, scan := fmt.Sscan(string(text), &load); err != nil || scan != nil {
		return true
	}
	return load > 1
}

// Ruby takes the formula of Homebrew as it is, and the addresses and sums in both feeds are those of the archives.
func TestFeeds(t *testing.T) {
	formula := made(t, "patchbay.rb")
	command(t, "ruby", "-c", formula)
	// A formula is a class; this one notes what it is told.
	const stub = `
class Formula
  @@of = ''
  def self.method_missing(name, *args, &block)
    case name
    when :on_macos, :on_linux, :on_intel, :on_arm then before = @@of; @@of += name.to_s + ' '; block.call; @@of = before
    when :url, :sha256 then puts @@of + name.to_s + ' ' + args[0]
    when :desc, :homepage, :version, :license, :service then nil
    else raise name.to_s
    end
  end
  def self.test; end
end
load ARGV[0]
raise 'install' unless Patchbay.method_defined?(:install)
`
	told := strings.Split(strings.TrimSpace(command(t, "ruby", "-e", stub, formula)), "\n")
	if len(told) != 8 {
		t.Fatalf("the formula says %q", told)
	}
	for i := 0; i < len(told); i += 2 {
		url, sum := told[i][strings.LastIndex(told[i], " ")+1:], told[i+1][strings.LastIndex(told[i+1], " ")+1:]
		of := map[string]string{"on_macos": "darwin", "on_linux": "linux", "on_intel": "amd64", "on_arm": "arm64"}
		words := strings.Fields(told[i])
		if want := "_" + of[words[0]] + "_" + of[words[1]] + ".tar.gz"; !strings.HasSuffix(url, want) {
			t.Errorf("%s: want %s", told[i], want)
		}
		sumFits(t, url, sum)
	}

	text, err := os.ReadFile(made(t, "patchbay.json"))
	if err != nil {
		t.Fatal(err)
	}
	type download struct{ URL, Hash string }
	var scoop struct {
		Version, Description, Homepage, License, Bin, Checkver string
		Architecture                                           map[string]download
		Autoupdate                                             struct{ Architecture map[string]download }
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&scoop); err != nil {
		t.Fatal(err)
	}
	if scoop.Bin != "patchbay.exe" || scoop.Version == "" || scoop.License != licence || len(scoop.Architecture) != 2 {
		t.Errorf("%s", text)
	}
	for word, arch := range map[string]string{"64bit": "amd64", "arm64": "arm64"} {
		one := scoop.Architecture[word]
		if !strings.HasSuffix(one.URL, "_windows_"+arch+".zip") || strings.ReplaceAll(scoop.Autoupdate.Architecture[word].URL, "$version", scoop.Version) != one.URL {
			t.Errorf("%s: %v", word, one)
		}
		sumFits(t, one.URL, one.Hash)
	}
}

// sumFits compares a sum with that of the file of the release at the end of an address.
func sumFits(t *testing.T, url, sum string) {
	t.Helper()
	content, err := os.ReadFile(made(t, url[strings.LastIndex(url, "/")+1:]))
	if err != nil {
		t.Fatal(err)
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		t.Errorf("the sum of %s is %x, and the feed says %s", url, got, sum)
	}
}

// The commands of docs/install.md accept what was downloaded, and find a file that was changed and checksums that were.
func TestVerification(t *testing.T) {
	archive := made(t, "patchbay_*_linux_amd64.tar.gz")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## Is it what was released?")
	_, rest, _ = strings.Cut(rest, "```console\n")
	block, _, _ := strings.Cut(rest, "```")
	var script []string
	for line := range strings.Lines(block) {
		if line, ok := strings.CutPrefix(line, "$ "); ok {
			script = append(script, strings.TrimSpace(line))
		}
	}
	if len(script) != 2 {
		t.Fatalf("docs/install.md has the commands %q", script)
	}
	work := t.TempDir()
	for from, name := range map[string]string{archive: filepath.Base(archive), made(t, "SHA256SUMS"): "SHA256SUMS", made(t, "SHA256SUMS.sig"): "SHA256SUMS.sig", made(t, "../patchbay.pub"): "patchbay.pub"} {
		copyFile(t, from, filepath.Join(work, name))
	}
	verify := func(want string, good bool) {
		t.Helper()
		cmd := exec.Command("sh", "-c", strings.Join(script, " && "))
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); (err == nil) != good || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, want %q in\n%s", script, err, want, out)
		}
	}
	change := func(name string) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(work, name))
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify(filepath.Base(archive)+": OK", true)
	change(filepath.Base(archive))
	verify(filepath.Base(archive)+": FAILED", false)
	change("SHA256SUMS")
	verify("Signature Verification Failure", false)
}

// The list of contents has each module of the program.
func TestContents(t *testing.T) {
	root := t.TempDir()
	command(t, "tar", "-xzf", made(t, "patchbay_*_linux_amd64.tar.gz"), "-C", root)
	info, err := buildinfo.ReadFile(filepath.Join(root, "patchbay"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(made(t, "patchbay_*_sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		BOMFormat, SpecVersion string
		Components             []struct {
			Name, Version, PURL string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &sbom); err != nil {
		t.Fatal(err)
	}
	licences, err := os.ReadFile(filepath.Join(root, "THIRD_PARTY_LICENSES"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range sbom.Components {
		known[c.Name+" "+c.Version] = true
		if len(c.Licenses) != 1 || c.Licenses[0].License.ID == "" {
			t.Errorf("%s has no licence", c.Name)
		}
	}
	for _, m := range info.Deps {
		if !known[m.Path+" "+m.Version] {
			t.Errorf("the list of contents lacks %s %s", m.Path, m.Version)
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m.Path+" "+m.Version) + ` \(`).Match(licences) {
			t.Errorf("THIRD_PARTY_LICENSES lacks %s %s", m.Path, m.Version)
		}
	}
}
