package main

import (
	"fmt"
	"os"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/block"
)

// Bytes from servers go to the file of --output, to the folder of --save or, if standard output is
// a terminal, to a new temporary folder. Otherwise nothing is saved. File names come from the names
// that a server gives, and cannot leave the folder; only the file of --output is overwritten.

// keep saves the bytes of a block and returns the name of the file, or "" if nothing is to be
// saved.
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

// subject returns the object of the verb, such as the name of a tool.
func (a *app) subject() string {
	if len(a.words) == 0 {
		return ""
	}
	return a.words[0]
}
