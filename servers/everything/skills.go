package everything

import (
	"embed"
	"io/fs"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/skills"
)

//go:embed skills
var skillFiles embed.FS

// addSkills offers the skills of the folder skills.
func addSkills(srv *mcp.Server) {
	folder, err := fs.Sub(skillFiles, "skills")
	if err == nil {
		_, err = skills.Serve(srv, folder)
	}
	if err != nil {
		panic(err) // the folder is part of the program
	}
}
