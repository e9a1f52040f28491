package launch

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
)

// passed are the variables that every command of a configuration gets: name and home of the user, places
// of programs, settings and temporary files, language and time. None of them is a secret by its purpose,
// as those of proxies may be.
var passed = []string{
	"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
}

// passedOnWindows are those of Windows, in upper case: there the case of names is of no
// account.
var passedOnWindows = []string{
	"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMPUTERNAME", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
	"NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERDOMAIN", "USERNAME",
	"USERPROFILE", "WINDIR",
}

// environment is what a command gets: what its configuration declares, and of the
// environment of this program all if it inherits that, else what is passed to everybody.
// The answers to the inputs of one server are for no other, and the passphrase of the vault is
// for none.
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

// Passes tells whether every command gets a variable of the environment on a system, which has a name as
// in runtime.GOOS.
func Passes(name, value, goos string) bool {
	if goos == "windows" {
		return slices.Contains(passedOnWindows, strings.ToUpper(name))
	}
	// Old shells run what a variable holds that looks like one of their functions.
	return (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")) && !strings.HasPrefix(value, "()")
}
