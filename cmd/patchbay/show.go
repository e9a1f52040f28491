package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/block"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// showResult prints the result of a tool. If output is not empty, it is the file for the first
// bytes, or for the text if there are none.
func (a *app) showResult(raw json.RawMessage, output string) error {
	blocks := block.Of(raw, func(i int, err error) { a.talk.Note("warning: invalid content block %d: %v", i, err) })
	if len(blocks) == 0 {
		a.talk.Note("the tool answered without content")
	}
	if output != "" {
		return a.saveBlocks(blocks, output)
	}
	return a.showBlocks(blocks)
}

// showBlocks prints blocks in order.
func (a *app) showBlocks(blocks []*block.Block) error {
	for _, b := range blocks {
		if err := a.showBlock(b); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showBlock(b *block.Block) error {
	text, isText := b.Words()
	data, _ := b.Blob()
	switch {
	case isText && b.Type == "resource":
		a.print("[resource " + oneLine(b.Resource.URI) + "]")
		a.showText(text, b.Resource.MIMEType)
	case isText:
		a.showText(text, "")
	case data == nil:
		a.printText(b.Describe())
	case a.Save == "" && a.showPicture(data):
		a.print(b.Describe() + a.paint("  --save DIR saves it", "2"))
	default:
		name, err := a.keep(b)
		if err != nil {
			return err
		}
		if name != "" {
			name = " saved as " + name
		}
		a.printText(b.Describe() + name)
	}
	return nil
}

// maxRendered bounds texts that are rendered, in bytes; longer ones are printed unchanged.
const maxRendered = 1 << 20

// showText prints a text of the given MIME type, which may be empty: at a terminal JSON is coloured
// and Markdown rendered.
func (a *app) showText(text, mime string) {
	mime, _, _ = strings.Cut(strings.ToLower(mime), ";")
	switch {
	case !a.tty.out || a.Plain || len(text) > maxRendered:
		a.printText(text)
	case screen.IsJSON(text):
		a.print(a.shownJSON(json.RawMessage(strings.TrimSpace(text))))
	case mime == "text/markdown", (mime == "" || mime == "text/plain") && screen.IsMarkdown(text):
		a.out.WriteString(screen.Markdown(visible(text), a.tty.width, a.tty.color))
	default:
		a.printText(text)
	}
}

// prose formats a description by a server in at most width columns; 0: its lines are not wrapped.
func (a *app) prose(text string, width int) string {
	if a.tty.out && !a.Plain && len(text) <= maxRendered && screen.IsMarkdown(text) {
		return strings.TrimRight(screen.Markdown(visible(text), width, a.tty.color), "\n")
	}
	return wrap(a.shown(text), width)
}

// printText prints text and ends its last line.
func (a *app) printText(text string) {
	a.out.WriteString(a.shown(text))
	if !strings.HasSuffix(text, "\n") {
		a.out.WriteByte('\n')
	}
}

// saveBlocks saves the first bytes among blocks and prints the rest, or saves the text if there are
// no bytes.
func (a *app) saveBlocks(blocks []*block.Block, path string) error {
	for i, b := range blocks {
		if data, mime := b.Blob(); data != nil {
			if err := a.save(path, data, mime); err != nil {
				return errors.Join(err, a.showBlocks(blocks)) // the call may not be repeatable
			}
			return a.showBlocks(append(blocks[:i:i], blocks[i+1:]...))
		}
	}
	var texts []string
	for _, b := range blocks {
		if s, ok := b.Words(); ok {
			texts = append(texts, s)
		} else {
			texts = append(texts, b.Describe())
		}
	}
	if err := a.save(path, []byte(strings.Join(texts, "\n")), "text"); err != nil {
		return errors.Join(err, a.showBlocks(blocks))
	}
	return nil
}

// save writes a file, or standard output if path is "-".
func (a *app) save(path string, data []byte, mime string) error {
	if path == "-" {
		_, err := a.out.Write(data)
		return err
	}
	f, err := ownfile.Sink(path, os.O_TRUNC, 0o666, nil)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	a.talk.Note("saved %s, %s, to %s", orName(mime, "bytes"), bytesOf(len(data)), path)
	return nil
}

// shownJSON returns JSON for printing: indented, and coloured at a terminal.
func (a *app) shownJSON(raw json.RawMessage) string {
	text := a.shown(indented(raw))
	if a.tty.out && a.tty.color {
		return screen.PaintJSON(text)
	}
	return text
}

// showPicture shows an image if the terminal can, and reports whether it did.
func (a *app) showPicture(data []byte) bool {
	if !a.tty.out {
		return false
	}
	shown := terminal.Picture(data, terminal.GraphicsOf(os.Getenv), a.tty.width)
	if shown != "" {
		a.print(shown)
	}
	return shown != ""
}
