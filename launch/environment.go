package launch

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
)

// passed are the variables that every command of a configuration gets: name and home of the user,
// locations of programs, settings and temporary files, language and time. None of them is meant for
// secrets, unlike those of proxies.
var passed = []string{
	"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
}

// passedOnWindows are the variables of Windows, in upper case: there names are not case-sensitive.
var passedOnWindows = []string{
	"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMPUTERNAME", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
	"NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERDOMAIN", "USERNAME",
	"USERPROFILE", "WINDIR",
}

// environment returns the environment of a command: the variables that its configuration declares
// and, of the environment of this program, all if it inherits that, else those of Passes. Answers
// to the inputs of one server are not given to another, and the passphrase of the vault is given to
// none.
func environment(s config.Server) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		if s.InheritEnv {
			return strings.HasPrefix(name, config.InputEnvPrefix) || name == "PATCHBAY_PASSPHRASE" || name == parentName
		}
		return !Passes(name, value, runtime.GOOS)
	})
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// Passes reports whether every command gets a variable of the environment on a system, named as in
// runtime.GOOS.
func Passes(name, value, goos string) bool {
	if goos == "windows" {
		return slices.Contains(passedOnWindows, strings.ToUpper(name))
	}
	// Old shells execute a variable with a value that looks like one of their functions.
	return (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")) && !strings.HasPrefix(value, "()")
}
