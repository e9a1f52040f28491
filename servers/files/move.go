package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

type moveInput struct {
	From    string `json:"from" doc:"a file or folder"`
	To      string `json:"to" doc:"its new path, which must not exist"`
	Parents bool   `json:"parents,omitempty" doc:"create missing folders of the new path"`
}

type moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (s *server) move(ctx context.Context, a *area, in moveInput) (*moved, error) {
	from, err := a.find(in.From)
	if err != nil {
		return nil, err
	}
	to, err := a.find(in.To)
	if err != nil {
		return nil, err
	}
	if from.rel == "." {
		return nil, fmt.Errorf("%q is a root, which cannot be moved", from.shown)
	}
	release, err := s.change(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if from.place == to.place {
		err = from.rename(to, in.Parents)
	} else {
		err = from.carry(ctx, to, in.Parents)
	}
	if err != nil {
		return nil, err
	}
	return &moved{from.shown, to.shown}, nil
}

// taken is the error for an existing destination.
func (t target) taken() error {
	return fmt.Errorf("%q exists, and move never replaces a file; move that away first, or choose another path", t.shown)
}

// rename moves a file or folder within a place.
func (t target) rename(to target, parents bool) error {
	is, err := t.place.dir.Lstat(t.name())
	if err != nil {
		return t.fault(err)
	}
	if strings.HasPrefix(to.rel, t.rel+"/") {
		return fmt.Errorf("%q cannot be moved into itself", t.shown)
	}
	folder, err := to.parent(parents)
	if err != nil {
		return err
	}
	defer folder.Close()
	dir := t.place.dir
	if there, err := dir.Lstat(to.name()); err == nil {
		// Where case does not matter, a name that differs only in case is the same file.
		if t.rel == to.rel || !strings.EqualFold(t.rel, to.rel) || !os.SameFile(is, there) {
			return to.taken()
		}
	} else if is.Mode().IsRegular() {
		// A file that appears meanwhile is not replaced either.
		switch err := dir.Link(t.name(), to.name()); {
		case errors.Is(err, fs.ErrExist):
			return to.taken()
		case err == nil:
			if err := dir.Remove(t.name()); err != nil {
				dir.Remove(to.name())
				return t.fault(err)
			}
			syncFolder(folder)
			return nil
		}
	}
	if err := dir.Rename(t.name(), to.name()); err != nil {
		return t.fault(err)
	}
	syncFolder(folder)
	return nil
}

// carry moves a file to another place, as a copy.
func (t target) carry(ctx context.Context, to target, parents bool) error {
	st, err := t.place.dir.Lstat(t.name())
	if err != nil {
		return t.fault(err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file; only those are moved from one root to another", t.shown)
	}
	f, info, err := t.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := to.place.dir.Lstat(to.name()); err == nil {
		return to.taken()
	}
	if _, err := to.store(ctx, f, storing{parents: parents, mode: info.Mode()}); err != nil {
		return err
	}
	f.Close() // Windows does not remove open files
	if now, err := t.place.dir.Lstat(t.name()); err != nil || !unchanged(info, now) {
		return fmt.Errorf("%q was changed meanwhile and is still there; %q is a copy of its old content", t.shown, to.shown)
	}
	if err := t.place.dir.Remove(t.name()); err != nil {
		return fmt.Errorf("%q is still there: %w; %q is a copy", t.shown, bare(err), to.shown)
	}
	return nil
}
