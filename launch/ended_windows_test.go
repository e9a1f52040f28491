package launch

import "os"

// ended reports whether a process does not exist. Windows has no limits to test.
func ended(*os.Process) bool { return true }
