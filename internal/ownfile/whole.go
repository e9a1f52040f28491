package ownfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// AppendLine adds a line, given without its end, to a file, which it creates with mode 0600. It ends
// a last line that has no end first. After an error, for instance of a full disk, the file is as
// before, unless another process has appended to it meanwhile.
func AppendLine(path string, line []byte) (err error) {
	made := false
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		made = true
		f, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil { // a pipe
		size = 0
	}
	added := append(append(make([]byte, 0, len(line)+2), line...), '\n')
	last := []byte{0}
	if _, err := f.ReadAt(last, size-1); size > 0 && err == nil && last[0] != '\n' {
		added = append([]byte{'\n'}, added...)
	}
	n, err := f.Write(added)
	if err != nil && n > 0 {
		if info, statErr := f.Stat(); statErr == nil && info.Mode().IsRegular() && info.Size() == size+int64(n) {
			_ = os.Truncate(path, size) // by path, as Windows does not truncate files that are open for appending
		}
	}
	info, statErr := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil && made && statErr == nil && info.Size() == 0 {
		_ = os.Remove(path)
	}
	return err
}

// Create writes a new file. If there is one, the error wraps [fs.ErrExist]. After another error no
// file is left.
func Create(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the error says why there is no file
	}
	return err
}
