package files

import (
	"io/fs"
	"syscall"
	"time"
)

// times are when a file was read last and when it was made, zero where the system does
// not tell.
func times(info fs.FileInfo) (accessed, created time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		accessed = time.Unix(st.Atim.Unix()).UTC()
	}
	return accessed, created
}
