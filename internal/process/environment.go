package process

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
)

// passed are the variables that every command of a configuration gets: name and home of the user,
// locations of programs, settings and temporary files, language and time. None of them is meant for
// secrets, unlike the variables for proxies.
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

// Passes reports whether every command gets a variable from the environment on a system, named as
// in runtime.GOOS.
func Passes(name, value, goos string) bool {
	if goos == "windows" {
		return slices.Contains(passedOnWindows, strings.ToUpper(name))
	}
	// Old shells execute a variable with a value that looks like one of their functions.
	return (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")) && !strings.HasPrefix(value, "()")
}

// Environment returns the environment of a command: the variables that its configuration declares
// and, of this program's environment, all but those in without if the command inherits it, else
// those that [Passes] allows. Answers to the inputs of one server are not given to another, and the
// passphrase of the vault is given to none.
func Environment(declared map[string]string, inherits bool, without ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		if inherits {
			return strings.HasPrefix(name, config.InputEnvPrefix) || name == "PATCHBAY_PASSPHRASE" || slices.Contains(without, name)
		}
		return !Passes(name, value, runtime.GOOS)
	})
	for name, value := range declared {
		env = append(env, name+"="+value)
	}
	return env
}
