// Package attach attaches local files and listings of folders to the messages that a person types:
// @./notes.txt, @./src/.
package attach

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host/mention"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/pdftext"
)

const (
	maxFiles = 20       // of one message
	maxFile  = 14 << 20 // bytes of a file
	maxText  = 1 << 20  // bytes of a text
)

// Message is a message that may mention files.
type Message struct {
	Text    string
	Servers []string   // names of servers, which no path begins with
	Model   model.Info // what the model accepts

	// Pasted are texts of which parts of the message are copies. A mention in them attaches nothing,
	// since the person may not have seen it.
	Pasted []string
}

// Files returns the contents of the files that a message mentions: "@" at the beginning of a word, and the
// path of a file or folder, in double quotes if it has spaces. A mention of a server does not name a file.
// The notes are for the person: what was attached, and which paths stay text.
func Files(ctx context.Context, m *Message) (parts []model.Part, notes []string, err error) {
	text := m.Text
	var done []string
	for i := range len(text) {
		if text[i] != '@' || i > 0 && strings.IndexByte(" \t\r\n([{<\"'", text[i-1]) < 0 {
			continue
		}
		if server, _ := mention.Server(m.Servers, text[i:], '@'); server != "" {
			continue
		}
		word, bare := wordOf(text[i+1:])
		if m.pasted(bare) { // nor is it looked up
			if looksLocal(bare) && !slices.Contains(done, bare) {
				notes = append(notes, fmt.Sprintf("@%s is from pasted text, so it is only text; type it to attach it", screen.OneLine(bare)))
				done = append(done, bare)
			}
			continue
		}
		path, is := named(word, bare)
		switch {
		case slices.Contains(done, path):
			continue
		case is == nil && looksLocal(path):
			notes = append(notes, fmt.Sprintf("%q does not exist, so @%s is only text", path, screen.OneLine(path)))
		case is == nil:
			continue
		case !is.Mode().IsRegular() && !is.IsDir():
			notes = append(notes, fmt.Sprintf("%q is not a file that can be attached, so @%s is only text", path, screen.OneLine(path)))
		case len(parts) == maxFiles:
			return nil, nil, fmt.Errorf("more than %d files are mentioned", maxFiles)
		case is.IsDir():
			text, n, err := list(local(path))
			if err != nil {
				return nil, nil, err
			}
			parts = append(parts, model.Part{Text: fmt.Sprintf("\n\n[folder %q]\n%s", path, text)})
			note := fmt.Sprintf("attached the names in %s: %d", screen.OneLine(path), n)
			if n >= maxListed {
				note += ", and there are more"
			}
			notes = append(notes, note)
		case is.Size() > maxFile:
			return nil, nil, fmt.Errorf("%s has %s; at most %s can be attached", path, screen.Bytes(int(is.Size())), screen.Bytes(maxFile))
		default:
			part, err := read(path)
			if err != nil {
				return nil, nil, err
			}
			part, about := Fit(ctx, part, m.Model)
			parts = append(parts, part)
			notes = append(notes, fmt.Sprintf("attached %s, %s%s", screen.OneLine(path), screen.Bytes(int(is.Size())), about))
		}
		done = append(done, path)
	}
	return parts, notes, nil
}

// wordOf returns the path at the beginning of a text, as it is written, and without punctuation at its end.
func wordOf(text string) (word, bare string) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		word, _, _ = strings.Cut(quoted, `"`)
	} else if word = text; strings.ContainsAny(text, " \t\r\n") {
		word = text[:strings.IndexAny(text, " \t\r\n")]
	}
	return word, strings.TrimRight(word, ".,;:!?)]}>'\"")
}

// named returns the path that is meant, and its file, or nil if there is none. Punctuation at the end is
// part of the path only if there is a file of that name.
func named(word, bare string) (path string, is os.FileInfo) {
	for _, path := range []string{word, bare} {
		if is, err := os.Stat(local(path)); path != "" && err == nil {
			return path, is
		}
	}
	return bare, nil
}

// pasted reports whether a mention of a path is in a pasted text.
func (m *Message) pasted(path string) bool {
	return path != "" && slices.ContainsFunc(m.Pasted, func(p string) bool { return strings.Contains(p, "@"+path) || strings.Contains(p, `@"`+path) })
}

// local returns a path for the system.
func local(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return filepath.FromSlash(path)
}

// looksLocal reports whether a path can only be meant as one.
func looksLocal(path string) bool {
	for _, begin := range []string{"./", "../", "/", "~/", `.\`, `..\`} {
		if strings.HasPrefix(path, begin) {
			return true
		}
	}
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".txt", ".md", ".json", ".csv", ".log", ".yaml", ".yml", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".go", ".py", ".ts", ".js":
		return ext != path
	}
	return false
}

// Fit returns what a model gets of a part: of a PDF that it does not accept, the text. It also returns what
// to add to a note for the person: that it is a text, or that the model does not accept a picture, sound or PDF.
func Fit(ctx context.Context, part model.Part, m model.Info) (model.Part, string) {
	media := part.Media
	if media == nil {
		return part, ""
	}
	what, why := "PDF", ""
	accepts := m.Files
	switch kind, sub, _ := strings.Cut(media.MIME, "/"); kind {
	case "image":
		what = sub + " pictures"
		accepts = m.Images && slices.Contains([]string{"png", "jpeg", "gif", "webp"}, sub)
	case "audio":
		what, accepts = "such sounds", m.Audio && slices.Contains([]string{"wave", "mpeg"}, sub)
	}
	if accepts {
		return part, ""
	}
	if what == "PDF" {
		text, read, err := pdftext.ForModel(ctx, media.Name, media.Data, maxText)
		if err == nil {
			return model.Part{Text: "\n\n" + text}, fmt.Sprintf(" (%s takes no PDF, so it gets %s)", screen.OneLine(m.Name), textOf(read))
		}
		why = fmt.Sprintf(", and the text of this one cannot be read (%v)", err)
	}
	return part, fmt.Sprintf("; %s takes no %s%s, so it only learns the name", screen.OneLine(m.Name), what, why)
}

// textOf says how much of the text of a PDF there is.
func textOf(t *pdftext.Text) string {
	text := "the text"
	if n := len(t.Pages); n < t.All {
		text += fmt.Sprintf(" of the first %d of %d pages", n, t.All)
	}
	if t.Unknown > 0 {
		text += fmt.Sprintf(", in which %d characters are not known", t.Unknown)
	}
	return text
}

func read(path string) (model.Part, error) {
	data, err := ownfile.ReadNow(local(path), maxFile) // the file may be another one now, or grow
	if err != nil {
		return model.Part{}, err
	}
	if len(data) > maxFile {
		return model.Part{}, fmt.Errorf("%s has more than %s, which is the most that can be attached", path, screen.Bytes(maxFile))
	}
	if rest, ok := bytes.CutPrefix(data, []byte("\xff\xfe")); ok && len(rest)%2 == 0 { // Notepad, PowerShell
		data = utf8Of(rest)
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch {
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"), kind == "application/pdf":
		return model.Part{Media: &model.Media{MIME: kind, Data: data, Name: filepath.Base(local(path))}}, nil
	case !utf8.Valid(data):
		return model.Part{}, fmt.Errorf("%s is neither UTF-8 text nor a picture, sound or PDF", path)
	case len(data) > maxText:
		return model.Part{}, fmt.Errorf("%s has %s of text; at most %s can be attached", path, screen.Bytes(len(data)), screen.Bytes(maxText))
	}
	return model.Part{Text: fmt.Sprintf("\n\n[file %q]\n%s", path, data)}, nil
}

// utf8Of converts UTF-16 with the lower byte first.
func utf8Of(data []byte) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// Complete returns the paths that begin with path, which begins with "./", "../", "/" or "~/"; else
// none. Folders end in "/".
func Complete(path string) []string {
	if !slices.ContainsFunc([]string{"./", "../", "/", "~/"}, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
		return nil
	}
	slash := strings.LastIndexByte(path, '/') + 1
	dir, begin := path[:slash], path[slash:]
	entries, err := os.ReadDir(local(dir))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || begin == "" && name[0] == '.' || strings.ContainsAny(name, " \t\r\n\"") || len(all) == 100 {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		all = append(all, dir+name)
	}
	return all
}
