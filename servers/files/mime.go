package files

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"
)

// mimeTypes maps names to types. The system's own tables are not used, because they differ between
// machines, and treat TypeScript as video.
var mimeTypes = map[string]string{
	".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".ico": "image/x-icon",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".png": "image/png", ".tif": "image/tiff", ".tiff": "image/tiff", ".webp": "image/webp",
	".aac": "audio/aac", ".flac": "audio/flac", ".m4a": "audio/mp4", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".wav": "audio/wav",
	".mkv": "video/x-matroska", ".mov": "video/quicktime", ".mp4": "video/mp4", ".webm": "video/webm",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".gz": "application/gzip", ".pdf": "application/pdf",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", ".tar": "application/x-tar", ".wasm": "application/wasm",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".zip": "application/zip", ".zst": "application/zstd",
}

// textTypes are the MIME types of text.
var textTypes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".go": "text/x-go", ".htm": "text/html", ".html": "text/html", ".js": "text/javascript",
	".json": "application/json", ".jsonl": "application/jsonl", ".md": "text/markdown", ".mjs": "text/javascript", ".py": "text/x-python",
	".rs": "text/x-rust", ".sh": "application/x-sh", ".svg": "image/svg+xml", ".toml": "application/toml", ".ts": "text/x-typescript",
	".tsx": "text/x-typescript", ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
}

// sniffed is the number of bytes that decide whether a file is text.
const sniffed = 8 << 10

// mimeOf is the MIME type of a file by its name and first bytes.
func mimeOf(name string, head []byte) string {
	ext := strings.ToLower(path.Ext(name))
	if isText(head) {
		if t := textTypes[ext]; t != "" {
			return t
		}
		return "text/plain"
	}
	if t := mimeTypes[ext]; t != "" {
		return t
	}
	if t, _, err := mime.ParseMediaType(http.DetectContentType(head)); err == nil && !strings.HasPrefix(t, "text/") {
		return t
	}
	return "application/octet-stream"
}

// isText reports whether a file with these first bytes is text: free of control
// characters that do not occur in text. It does not check the encoding.
func isText(head []byte) bool {
	return bytes.IndexFunc(head[:min(len(head), sniffed)], func(r rune) bool {
		return r < 0x20 && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r)
	}) < 0
}

// cutRune drops the rest of a cut character at the end.
func cutRune(b []byte) []byte {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
