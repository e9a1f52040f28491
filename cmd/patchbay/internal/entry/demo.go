package entry

import (
	"os"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/project"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/servers"
)

// Demo returns the servers of a machine without any configuration, and notes about them: they need nothing, and show what
// a server is. The working folder is among them if it is a project.
func Demo() (list []config.Server, notes []string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	why := project.Why(ownfile.RealPath(dir))
	for _, name := range []string{"shop", "sqlite", "files", "conjugate"} {
		if name == "files" && why != "" {
			notes = append(notes, "files is not served: "+dir+" is not a project ("+why+")")
			continue
		}
		if name == "files" {
			notes = append(notes, "files serves "+dir+", read-only, without files that usually hold secrets")
		}
		list = append(list, config.Server{Name: name, Builtin: name, Args: servers.Unattended(name)})
	}
	return list, notes, nil
}
