package main

import (
	"fmt"
	"os"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/block"
)

// Where bytes of servers go: to the file of --output, to the folder of --save, and else,
// if a person sits at the terminal, to a new folder for temporary files. Without a terminal
// nothing is saved unless a flag says so. The names of files are made of what the server says,
// and lead nowhere else; no file is written over but that of --output.

// keep saves the bytes of a block and returns the name of the file. It is empty if they
// are not to be saved.
func (a *app) keep(b *block.Block) (string, error) {
	data, mime := b.Blob()
	dir := a.Save
	switch {
	case dir != "":
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", fmt.Errorf("--save: %w", err)
		}
	case !a.tty.out:
		return "", nil
	case a.saveDir == "":
		made, err := os.MkdirTemp("", "patchbay-saved-")
		if err != nil {
			return "", err
		}
		a.saveDir = made
		fallthrough
	default:
		dir = a.saveDir
	}
	name := a.subject()
	if b.Type == "resource" {
		name = block.LastSegment(b.Resource.URI)
	}
	stem, ext := block.FileName(name, mime)
	return block.WriteNew(dir, stem, ext, data)
}

// subject is what the verb is about, such as the name of a tool.
func (a *app) subject() string {
	if len(a.words) == 0 {
		return ""
	}
	return a.words[0]
}
