package entry

import (
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/servers"
)

// Unbuilt moves the servers whose "builtin" is not the name of a built-in server from a file to its
// faults, which it returns.
func Unbuilt(file *config.File, faults config.Problems) config.Problems {
	file.Servers = slices.DeleteFunc(file.Servers, func(s config.Server) bool {
		if s.Builtin == "" || slices.Contains(servers.Names(), s.Builtin) || len(s.Inputs()) > 0 {
			return false
		}
		for _, v := range s.Values() {
			if v.Member != "builtin" {
				continue
			}
			fix := "built in: " + strings.Join(servers.Names(), ", ") + screen.DidYouMean(s.Builtin, servers.Names())
			p := v.Problem(`there is no built-in server "`+screen.Clip(s.Builtin)+`"`, fix)
			p.Disabled = s.Disabled
			at := slices.IndexFunc(faults, func(q config.Problem) bool { return q.Path != p.Path || q.Line > p.Line })
			if at < 0 {
				at = len(faults)
			}
			faults = slices.Insert(faults, at, p)
		}
		return true
	})
	return faults
}
