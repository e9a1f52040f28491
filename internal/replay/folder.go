package replay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// OpenLast opens the recordings that the last program has written to a folder, of all its files in their
// order, and returns how many are older. Connections of other programs may have the same names, so their
// frames cannot be in one recording.
func OpenLast(files []string) (r io.ReadCloser, older int, err error) {
	run := func(file string) string { // what stands between the day and the number, see trace/record
		name := filepath.Base(file)
		return name[min(len("trace-2006-01-02-"), len(name)):max(strings.LastIndexByte(name, '-'), min(len("trace-2006-01-02-"), len(name)))]
	}
	all := new(joined)
	var in []io.Reader
	for _, file := range files {
		if run(file) != run(files[len(files)-1]) {
			older++
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, 0, errors.Join(err, all.Close())
		}
		all.files = append(all.files, f)
		in = append(in, f, strings.NewReader("\n")) // the file of a killed program may end within a line
	}
	all.Reader = io.MultiReader(in...)
	return all, older, nil
}

// joined is several files, one after another.
type joined struct {
	io.Reader
	files []*os.File
}

func (j *joined) Close() (err error) {
	for _, f := range j.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
