package block

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// WriteNew writes a new file: stem.ext, stem-2.ext and so on. It never overwrites a file.
func WriteNew(dir, stem, ext string, data []byte) (string, error) {
	for n := 1; n <= 10_000; n++ {
		name := stem + ext
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		full := filepath.Join(dir, name)
		err := ownfile.Create(full, data, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return full, nil
	}
	return "", fmt.Errorf("%s has ten thousand files named %s%s; empty it", dir, stem, ext)
}

// extensions are the file extensions of types that tools return. Only these are used, because
// systems choose the program that opens a file by its extension.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"image/bmp": ".bmp", "image/tiff": ".tiff", "image/avif": ".avif",
	"audio/mpeg": ".mp3", "audio/mp3": ".mp3", "audio/wav": ".wav", "audio/x-wav": ".wav", "audio/ogg": ".ogg", "audio/flac": ".flac",
	"audio/aac": ".aac", "audio/mp4": ".m4a", "audio/webm": ".weba", "video/mp4": ".mp4", "video/webm": ".webm",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json",
	"text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv", "text/html": ".html",
}

// FileName makes a safe file name from a name that a server chose.
func FileName(name, mime string) (stem, ext string) {
	mime, _, _ = strings.Cut(strings.ToLower(mime), ";")
	if ext = extensions[strings.TrimSpace(mime)]; ext == "" {
		ext = ".bin"
	}
	if old := path.Ext(name); strings.EqualFold(old, ext) || ext == ".jpg" && strings.EqualFold(old, ".jpeg") {
		name = strings.TrimSuffix(name, old)
	}
	const most = 60 // letters, at most 4 bytes each
	n := 0
	stem = strings.Map(func(r rune) rune {
		if n++; n > most {
			return -1
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(name, "-"))
	stem = strings.Trim(stem, ".-_ ")
	first, _, _ := strings.Cut(strings.ToUpper(stem), ".")
	device := len(first) == 4 && (strings.HasPrefix(first, "COM") || strings.HasPrefix(first, "LPT"))
	switch {
	case stem == "":
		stem = "result"
	case device, first == "CON", first == "PRN", first == "AUX", first == "NUL": // devices of Windows
		stem = "_" + stem
	}
	return stem, ext
}

// LastSegment returns the last segment of a URI's path, or its host if the path is empty.
func LastSegment(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	p := strings.Trim(u.Path, "/")
	if p == "" {
		p = u.Host + u.Opaque
	}
	return path.Base(p)
}
