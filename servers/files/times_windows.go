package files

import (
	"io/fs"
	"syscall"
	"time"
)

// times are when a file was read last and when it was made, zero where the system does
// not tell.
func times(info fs.FileInfo) (accessed, created time.Time) {
	if st, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		accessed, created = time.Unix(0, st.LastAccessTime.Nanoseconds()).UTC(), time.Unix(0, st.CreationTime.Nanoseconds()).UTC()
	}
	return accessed, created
}
