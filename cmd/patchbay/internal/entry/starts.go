package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// Starts returns lines about the commands that a file starts, as servers and hooks, and the URLs of the servers and models
// that it reaches, with their arguments, variables and headers. Each is one line, whatever the file
// contains.
func Starts(file *config.File, faults config.Problems) []string {
	var lines []string
	for _, s := range file.Servers {
		if s.Disabled {
			continue
		}
		var g given
		envFile := ""
		for _, v := range s.Values() {
			written := v.Written
			switch {
			case v.Member == "envFile":
				envFile = " (envFile: " + written + ")"
			case written == "":
				written = v.Text() // from the envFile
			}
			g.add(v.Member, v.Name, written)
		}
		line := s.Name + ": " + started(&s) + g.String() + envFile
		if s.InheritEnv {
			line += " (gets your whole environment)"
		}
		if s.Dev.Debug != "" {
			line += " (under a debugger, to which programs of this machine can attach)"
		}
		if s.Dir != "" {
			line += " (in " + s.Dir + ")"
		}
		lines = append(lines, inOneLine(line))
	}
	for _, m := range file.Models {
		if m.BaseURL != "" {
			lines = append(lines, inOneLine("model "+m.Name+": "+m.Provider+"/"+m.Model+" at "+secrets.ShownURL(m.BaseURL)+" (gets conversations)"))
		}
	}
	for _, h := range file.Hooks {
		var g given
		for _, v := range h.Values() {
			g.add(v.Member, v.Name, v.Written)
		}
		line := HookName(&h) + ": " + screen.Shell(shownCommand(h.CommandLine())) + g.String() + " (gets calls)"
		if h.Dir != "" {
			line += " (in " + h.Dir + ")"
		}
		lines = append(lines, inOneLine(line))
	}
	for _, e := range file.Entries() {
		if !slices.ContainsFunc(faults, func(p config.Problem) bool { return p.Server == e.Name }) {
			continue
		}
		// The server cannot be started now; it can once a variable is set.
		line := e.Name + ":"
		for _, member := range []string{"builtin", "command", "args", "url"} {
			if raw, ok := jsonx.Lookup(e.Object, member); ok {
				line += " " + asWritten(raw)
			}
		}
		var g given
		for _, member := range []string{"env", "headers"} {
			table, _ := jsonx.Lookup(e.Object, member)
			for name, value := range jsonx.Members(table) {
				text, err := jsonx.Unquote(value)
				if err != nil {
					text = string(value)
				}
				g.add(member, string(name), text)
			}
		}
		if _, ok := jsonx.Lookup(e.Object, "api_key"); ok {
			g.add("headers", "Authorization", "")
		}
		line += g.String()
		for _, member := range []string{"envFile", "cwd", "dev", "patchbay"} {
			if raw, ok := jsonx.Lookup(e.Object, member); ok {
				line += fmt.Sprintf(" (%s: %s)", member, asWritten(raw))
			}
		}
		lines = append(lines, inOneLine(line+" (with faults)"))
	}
	if bytes.Contains(file.Text, []byte(`"inheritEnv"`)) && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "your whole environment") }) {
		lines = append(lines, `the file has "inheritEnv", with which a server gets your whole environment`)
	}
	return lines
}

// HookName returns the name of a hook, and when it runs.
func HookName(h *config.Hook) string {
	when, tools := "before", "all calls"
	if h.After {
		when = "after"
	}
	if h.Tools != nil {
		tools = strings.Join(h.Tools, ", ")
	}
	return fmt.Sprintf("hook %s %s %s", h.Name, when, tools)
}

// started returns the command of a server, or its URL without possible secrets.
func started(s *config.Server) string {
	switch {
	case s.URL != "":
		return Where(s)
	case s.Builtin != "":
		return screen.Shell(shownCommand(append([]string{s.Builtin}, s.Args...)))
	}
	return screen.Shell(shownCommand(s.CommandLine()))
}

// shownCommand returns a program and its arguments, for people. It hides arguments that look like
// secrets, but none that may be code or a path: otherwise code in the form of a secret would be
// hidden from the person who decides whether it may run.
func shownCommand(words []string) []string {
	out := slices.Clone(words)
	for i := 1; i < len(words); i++ {
		if !plainWord().MatchString(words[i]) || secrets.IsCode(words[i-1]) && !assignment().MatchString(words[i]) {
			continue
		}
		out[i] = secrets.Lookalikes(secrets.ShownArg(words[i-1], words[i]))
	}
	return out
}

// plainWord matches words that a shell does not evaluate and that do not name a file by a path.
var plainWord = pattern.Lazy(`^[\pL\pN_@%+-][\pL\pN_@%+=:,/.?&-]*$`)

// assignment matches code that only sets a variable, and the value of "docker run -e", in front of
// the value, which is a plain word.
var assignment = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*=`)

// given collects the variables and headers that a server gets: their names, and the values that a
// person may see.
type given struct{ sets, sends []string }

func (g *given) add(member, name, written string) {
	value, show := g.shown(member, name, written)
	switch {
	case member == "env" && show:
		g.sets = append(g.sets, name+"="+value)
	case member == "env":
		g.sets = append(g.sets, name)
	case member == "headers" && show:
		g.sends = append(g.sends, name+": "+value)
	case member == "headers":
		g.sends = append(g.sends, name)
	}
}

// shown returns a value as a question of trust shows it, and whether it is shown. References are
// shown, because the file does not hold their values; so are variables that change which program
// runs. Any other value may be a secret, whatever its name.
func (*given) shown(member, name, written string) (value string, show bool) {
	if m := reference().FindStringSubmatch(written); m != nil {
		if m[2] != "" {
			return "${" + m[1] + ":-…}", true
		}
		return written, true
	}
	if member != "env" || !changesRun(name) {
		return "", false
	}
	if u, err := url.Parse(written); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return secrets.ShownURL(written), true
	}
	return written, true
}

// reference matches a value that is only a reference, and its default.
var reference = pattern.Lazy(`^\$\{([^{}]*?)(:-[^{}]*)?\}$`)

// runChanging are variables, in lower case, that change which program runs, what it loads, or which
// host it contacts; a "*" stands for any end.
var runChanging = []string{
	"path", "pathext", "home", "userprofile", "shell", "comspec", "env", "bash_env", "bash_func_*", "zdotdir", "ifs", "prompt_command", "editor", "visual", "pager", "browser",
	"ld_*", "dyld_*", "glibc_tunables", "gconv_path", "*_proxy", "ssl_cert_file", "ssl_cert_dir", "ssh_askpass", "curl_ca_bundle", "requests_ca_bundle",
	"node_options", "node_path", "node_extra_ca_certs", "npm_config_*", "python*", "pip_*", "uv_*", "virtual_env", "perl5*", "perllib", "ruby*", "gem_*", "bundle_*",
	"java_tool_options", "_java_options", "jdk_java_options", "java_home", "classpath", "maven_opts", "gradle_opts", "dotnet_*", "coreclr_*", "php_ini_scan_dir", "phprc", "lua_*",
	"go*", "cargo_*", "rustc*", "rustup_*", "deno_*", "bun_*", "git_*", "docker_*", "kubeconfig", "tmpdir", "temp", "tmp", "xdg_*",
	"cc", "cxx", "ld", "ps4", "terminfo", "lessopen", "lessclose", "openssl_*", "cor_*", "ts_node_*", "julia_*", "r_profile*", "r_environ*", "erl_*", "nvm_*", "pyenv_*",
	"*flags", "*_opts", "*_options", "*path", "*_home", "*_root", "*_dir", "*_file", "*_config", "*_conf", "*_project", "*_profile", "*_modules", "*init",
	"*_command", "*_cmd", "*_program", "*_executable", "*_shell", "*_editor", "*pager", "*_browser", "*_wrapper", "*_hook", "*_plugins",
}

// changesRun reports whether a variable changes what runs. A variable that is named like a secret,
// other than GIT_CONFIG_KEY_*, is treated as a secret instead.
func changesRun(name string) bool {
	lower := strings.ToLower(name)
	if secrets.Name(name) && !strings.HasPrefix(lower, "git_config_key_") {
		return false
	}
	return slices.ContainsFunc(runChanging, func(p string) bool { return wildcard.Match(p, lower) })
}

func (g *given) String() (text string) {
	if slices.Sort(g.sets); len(g.sets) > 0 {
		text += " (sets " + strings.Join(g.sets, ", ") + ")"
	}
	if slices.Sort(g.sends); len(g.sends) > 0 {
		text += " (sends " + strings.Join(g.sends, ", ") + ")"
	}
	return text
}

// asWritten returns a member of a server that cannot be parsed, arguments and URLs without possible
// secrets.
func asWritten(raw json.RawMessage) string {
	var args []string
	if jsonx.KindOf(raw) == '[' && json.Unmarshal(raw, &args) == nil {
		if text, err := jsonx.Marshal(shownCommand(append([]string{""}, args...))[1:]); err == nil {
			return string(text)
		}
	}
	if text, err := jsonx.Unquote(raw); err == nil && len(secrets.URL(text)) > 0 {
		return strconv.Quote(secrets.ShownURL(text))
	}
	return string(raw)
}

// inOneLine shows line breaks as characters, because a line of a question must not look like the
// next one, and long runs of blanks as their number, because they push text off the screen.
func inOneLine(s string) string {
	s = strings.NewReplacer("\r\n", "␊", "\n", "␊", "\r", "␍").Replace(s)
	return blanks().ReplaceAllStringFunc(s, func(run string) string {
		return fmt.Sprintf("⟨%d blanks⟩", utf8.RuneCountInString(run))
	})
}

var blanks = pattern.Lazy(`[\s\p{Z}]{9,}`)

// Agreement returns the content that a yes to a file covers: its text, and the variables of the
// environment files of its enabled servers, any of which may change what runs.
func Agreement(file *config.File) []byte {
	text := slices.Clone(file.Text)
	for _, s := range file.Servers {
		if s.Disabled || s.EnvFile == "" {
			continue
		}
		for _, v := range s.Values() {
			if v.Member == "env" && v.Written == "" {
				text = fmt.Appendf(text, "\x00%q %q=%q", s.Name, v.Name, v.Text())
			}
		}
	}
	return text
}
