package instructions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/trust"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/skills"
)

// Bounds of the skills of a folder.
const (
	maxSkills     = 50
	maxSkillFiles = 2000
	maxSkillBytes = 32 << 20
	maxAbout      = 250 // bytes of a description in the list for the model
)

// projectSkills is the folder of skills in a project.
const projectSkills = ".agents/skills"

// Skills returns servers of skills: "skills", those of the person, which are beside their mcp.json, and
// "project-skills", those of the repository, if the person agrees to their current content. A server lists
// names and descriptions in its instructions; the model reads a skill when a task needs it, and a prompt
// of its name gives it to the model at once. The files are read now, so that a later change is not used.
// Without skills there is no server.
func (r *Reader) Skills(ctx context.Context) ([]host.Server, error) {
	var list []host.Server
	add := func(name string, set *skillSet) error {
		if set == nil {
			return nil
		}
		srv, err := set.server(name)
		if err != nil {
			return err
		}
		list = append(list, host.Server{Name: name, Trusted: true, Identity: name + " " + set.dir, Open: func(context.Context, *mcp.Client) (mcp.Handler, error) { return srv, nil }})
		return nil
	}
	if user, ok := config.UserFile(); ok {
		if err := add("skills", r.readSkills(filepath.Dir(user), "skills")); err != nil {
			return nil, err
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return list, nil
	}
	set := r.readSkills(upToRoot(ownfile.RealPath(here))[0], projectSkills)
	if set == nil {
		return list, nil
	}
	store, err := trust.Open("")
	if err != nil {
		return nil, err
	}
	what := &file{path: set.dir, name: projectSkills, text: strings.Join(set.lines(), "\n"), data: set.digests()}
	if yes, err := r.agreed(ctx, store, what); err != nil || !yes {
		return list, err
	}
	return list, add("project-skills", set)
}

// skillSet is the skills of a folder, as they were read.
type skillSet struct {
	dir   string
	files memory
	list  []*skills.Skill
}

// readSkills reads the skills of a folder below a root, out of which no link is followed. It returns nil
// if there is none. Invalid skills are left out and noted.
func (r *Reader) readSkills(root, name string) *skillSet {
	above, err := os.OpenRoot(root)
	if err != nil {
		return nil
	}
	defer above.Close()
	dir, err := above.OpenRoot(name)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.Note("%s is not used: %v", name, err)
		}
		return nil
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		r.Note("%s is not used: %v", name, err)
		return nil
	}
	set := &skillSet{dir: filepath.Join(root, filepath.FromSlash(name)), files: memory{}}
	room := maxSkillBytes
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		files, err := readSkill(dir.FS(), e.Name(), min(room, skills.MaxBytes))
		var list []*skills.Skill
		if err == nil && len(set.list) == maxSkills {
			err = fmt.Errorf("there are more than %d skills", maxSkills)
		}
		if err == nil {
			var folder *skills.Folder
			if folder, err = skills.Serve(&mcp.Server{Name: "check", Version: "1"}, files); err == nil {
				list = folder.Skills()
			}
		}
		if err != nil {
			r.Note("the skill %s is not used: %v", screen.OneLine(name+"/"+e.Name()), err)
			continue
		}
		set.list = append(set.list, list...)
		for path, data := range files {
			set.files[path] = data
			room -= len(data)
		}
	}
	if len(set.list) == 0 {
		return nil
	}
	return set
}

// readSkill reads the files of a skill, at most most bytes.
func readSkill(fsys fs.FS, name string, most int) (memory, error) {
	files := memory{}
	err := fs.WalkDir(fsys, name, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != name && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fmt.Errorf("%q is a link or not a file", p)
		}
		data, err := readUpTo(fsys, p, most)
		if err != nil {
			return err
		}
		if most -= len(data); most < 0 || len(files) == maxSkillFiles {
			return errors.New("it is too large")
		}
		files[p] = data
		return nil
	})
	return files, err
}

// lines describes the skills for the person.
func (s *skillSet) lines() []string {
	var lines []string
	for _, skill := range s.list {
		size := int64(0)
		for _, f := range skill.Files {
			size += f.Size
		}
		lines = append(lines, fmt.Sprintf("skill %s: %s (%s, %s)", skill.Name, screen.OneLine(skill.Description), screen.Quantity(len(skill.Files), "file"), screen.Bytes(int(size))))
	}
	return lines
}

// digests identifies the content of all files.
func (s *skillSet) digests() []byte {
	var b []byte
	for _, p := range s.files.paths() {
		b = fmt.Appendf(b, "%q %x\n", p, sha256.Sum256(s.files[p]))
	}
	return b
}

// server returns the server of the skills.
func (s *skillSet) server(name string) (*mcp.Server, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Skills are instructions for kinds of tasks. When a task is of such a kind, first read its skill with read_resource (server %q), and the files that it names when they are needed.", name)
	srv := &mcp.Server{Name: name, Version: "1"}
	for _, skill := range s.list {
		about := screen.OneLine(skill.Description)
		if len(about) > maxAbout {
			about = screen.Cut(about, maxAbout)
		}
		fmt.Fprintf(&b, "\n%s: %s", skill.URI, about)
		_, file, _ := strings.Cut(skill.URI, "://")
		text := string(s.files[file])
		type arguments struct {
			Task string `json:"task,omitempty" doc:"what to do with the skill"`
		}
		mcp.AddPrompt(srv, mcp.Prompt{Name: skill.Name, Description: about}, func(_ context.Context, in arguments) (string, error) {
			return strings.TrimSpace(fmt.Sprintf("Use the skill %s of server %q:\n\n%s\n\n%s", skill.URI, name, text, in.Task)), nil
		})
	}
	srv.Instructions = b.String()
	if _, err := skills.Serve(srv, s.files); err != nil {
		return nil, err
	}
	return srv, nil
}
