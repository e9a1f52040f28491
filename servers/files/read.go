package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxBlob bounds one read of a file that is not text, and any resource, in bytes. In base64
// it is within the 4 MiB that clients accept.
const maxBlob = 2 << 20

// maxBlobs bounds the files that read_many reads and that are not text, in bytes, to leave
// room for text.
const maxBlobs = 3 << 19

// errFull says that the answer is full.
var errFull = errors.New("not read: the files before it fill the answer; read it separately")

type readInput struct {
	Path   string `json:"path" doc:"a file"`
	Offset int    `json:"offset,omitempty" doc:"first line to read, from 1" min:"1"`
	Limit  int    `json:"limit,omitempty" doc:"maximum number of lines; alone, the head of the file" min:"1"`
	Tail   int    `json:"tail,omitempty" doc:"number of lines at the end to read instead" min:"1"`
}

type readManyInput struct {
	Paths []string `json:"paths" doc:"files" min:"1" max:"50"`
}

func (s *server) addReading() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "read", Title: "Read a file",
		Description: "Reads a file: text as it is, by lines if wanted and at most 256 KiB at once; pictures as images and sounds as audio; anything else as a blob.",
		Annotations: reads,
	}, inArea(s, s.read))
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "read_file", Title: "Read a file", Description: "Another name of read.",
		Annotations: reads,
	}, inArea(s, s.read))
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "read_many", Title: "Read files",
		Description: "Reads up to 50 files, together at most 256 KiB of text and 1.5 MiB of the rest. Each is headed by its path. A file that cannot be read does not affect the others.",
		Annotations: reads,
	}, inArea(s, s.readMany))
}

func (s *server) read(ctx context.Context, a *area, in readInput) (*mcp.ToolResult, error) {
	if in.Tail > 0 && (in.Offset > 0 || in.Limit > 0) {
		return nil, errors.New("tail cannot be combined; leave out offset and limit")
	}
	t, err := a.find(in.Path)
	if err != nil {
		return nil, err
	}
	c, err := t.content(ctx, in, maxText)
	if err != nil {
		return nil, err
	}
	res := &mcp.ToolResult{Content: []mcp.Content{c.block}}
	if c.note != "" {
		res.Content = append(res.Content, mcp.Text(c.note))
	}
	return res, nil
}

func (s *server) readMany(ctx context.Context, a *area, in readManyInput) (*mcp.ToolResult, error) {
	res := &mcp.ToolResult{IsError: true} // until one was read
	texts, blobs := maxText, maxBlobs
	for _, p := range in.Paths {
		head := "==> " + text.Short(p) + " <==\n"
		t, err := a.find(p)
		var c content
		if err == nil {
			head = "==> " + t.shown + " <==\n"
			if err = errFull; texts > 0 {
				c, err = t.content(ctx, readInput{}, texts)
			}
		}
		if err == nil && c.blob > blobs {
			err = errFull
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			res.Content = append(res.Content, mcp.Text(head+"error: "+err.Error()))
			continue
		}
		res.IsError = false
		blobs -= c.blob
		note := ""
		if c.note != "" {
			note = "\n(" + c.note + ")"
		}
		if b, ok := c.block.(mcp.TextContent); ok {
			texts -= len(b.Text)
			res.Content = append(res.Content, mcp.Text(head+b.Text+note))
			continue
		}
		res.Content = append(res.Content, mcp.Text(strings.TrimSuffix(head, "\n")+note), c.block)
	}
	return res, nil
}

// content is the result of reading a file.
type content struct {
	block mcp.Content
	note  string // for the reader
	blob  int    // bytes, if it is not text
}

// content reads a file, at most most bytes if it is text.
func (t target) content(ctx context.Context, in readInput, most int) (content, error) {
	f, info, err := t.open()
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	head, err := headOf(f)
	if err != nil {
		return content{}, t.fault(err)
	}
	if isText(head) {
		return t.text(ctx, f, info, in, most)
	}
	mime := mimeOf(t.rel, head)
	if in.Offset > 0 || in.Limit > 0 || in.Tail > 0 {
		return content{}, fmt.Errorf("%q is %s, not text by lines; leave out offset, limit and tail", t.shown, mime)
	}
	data, err := readWhole(f, info, maxBlob)
	if err != nil {
		return content{}, t.fault(err)
	}
	c := content{blob: len(data)}
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image":
		c.block = mcp.ImageContent{Data: data, MIMEType: mime}
	case "audio":
		c.block = mcp.AudioContent{Data: data, MIMEType: mime}
	default:
		c.block = mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: t.uri(), MIMEType: mime, Blob: data}}
	}
	return c, nil
}

// text reads lines.
func (t target) text(ctx context.Context, f *os.File, info fs.FileInfo, in readInput, most int) (content, error) {
	var w window
	var err error
	if in.Tail > 0 {
		w, err = readTail(f, info.Size(), in.Tail, most)
	} else {
		w, err = readLines(ctx, f, max(in.Offset, 1), in.Limit, most)
	}
	if err != nil {
		return content{}, t.fault(err)
	}
	text, wrong := valid(w.text)
	var notes []string
	switch {
	case w.cut:
		notes = append(notes, fmt.Sprintf("the line is longer than %d bytes and was cut", most))
		if in.Tail == 0 {
			notes = append(notes, fmt.Sprintf("the next line is at offset %d", w.first+1))
		}
	case in.Tail > 0 && w.lines < in.Tail && w.more:
		notes = append(notes, fmt.Sprintf("only the last %s fit in one answer", plural(w.lines, "line", "lines")))
	case in.Tail == 0 && w.more:
		notes = append(notes, fmt.Sprintf("lines %d to %d; the file goes on at offset %d", w.first, w.first+w.lines-1, w.first+w.lines))
	case len(text) == 0:
		notes = append(notes, "the file is empty")
	}
	if wrong > 0 {
		notes = append(notes, fmt.Sprintf("not valid UTF-8: %s shown as U+FFFD, so do not write this back", plural(wrong, "byte is", "bytes are")))
	}
	return content{block: mcp.Text(text), note: strings.Join(notes, "; ")}, nil
}

// headOf reads the first bytes of a file, at any read position.
func headOf(f *os.File) ([]byte, error) {
	head := make([]byte, sniffed)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// readWhole reads a file of at most most bytes.
func readWhole(f *os.File, info fs.FileInfo, most int64) ([]byte, error) {
	size, data := info.Size(), []byte(nil)
	if size <= most {
		var err error
		if data, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
			return nil, err
		}
		size = int64(len(data)) // it may have grown
	}
	if size > most {
		return nil, fmt.Errorf("has %d bytes; the maximum is %d", size, most)
	}
	return data, nil
}
