package main

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/block"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

var readVerb = verb{
	name: "read", summary: "Read a resource.", usage: "URI [SERVER]",
	examples: []string{"patchbay read test://static-text -s everything", "patchbay read test://static-binary -s everything -o picture.png"},
	server:   oneServer,
	details:  `Prints text. Bytes go to --output, or unchanged to a file or pipe.`,
	command:  func() command { return new(readCmd) },
}

type readCmd struct {
	URI    string `arg:"" optional:"" name:"uri" help:"The resource to read."`
	Output string `short:"o" placeholder:"FILE" help:"Save the contents."`
}

func (*readCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) > 0 {
		return nil
	}
	return a.features(current, feature.Resources)
}

func (c *readCmd) Run(a *app) error {
	if c.URI == "" {
		return a.which(feature.Resources)
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	raw, err := p.Raw(a.ctx, "resources/read", map[string]string{"uri": c.URI}, a.listening()...)
	if err != nil {
		return &fault{Err: err, Next: a.other("resources")}
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	if c.Output != "" {
		blocks, err := readBlocks(raw)
		if err != nil {
			return err
		}
		return a.saveBlocks(blocks, c.Output)
	}
	return a.showContents(raw)
}

// showContents prints the contents of a resource: text, and bytes unless standard output is a
// terminal.
func (a *app) showContents(raw json.RawMessage) error {
	blocks, err := readBlocks(raw)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if text, ok := b.Words(); ok {
			if len(blocks) > 1 {
				a.print("[resource " + oneLine(b.Resource.URI) + "]")
			}
			a.showText(text, b.Resource.MIMEType)
		} else if data, _ := b.Blob(); data != nil && !a.tty.out && a.Save == "" {
			a.out.Write(data)
		} else if err := a.showBlock(b); err != nil {
			return err
		}
	}
	return nil
}

// readBlocks returns the contents of a resource as content blocks.
func readBlocks(raw json.RawMessage) ([]*block.Block, error) {
	list, _ := jsonx.Lookup(raw, "contents")
	if jsonx.KindOf(list) != '[' {
		return nil, fmt.Errorf("resources/read: the result has no array %q", "contents")
	}
	var out []*block.Block
	for item := range jsonx.Elements(list) {
		c, err := decode[block.Contents](item)
		if err != nil {
			return nil, fmt.Errorf("resources/read: contents[%d]: %w", len(out), err)
		}
		out = append(out, &block.Block{Type: "resource", Resource: c, Raw: item})
	}
	return out, nil
}
