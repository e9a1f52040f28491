package terminal

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // formats that can be shown
	_ "image/jpeg"
	"image/png"
	"strings"
)

// Graphics is the protocol by which a terminal shows pictures.
type Graphics int

const (
	graphicsNone  Graphics = iota
	graphicsKitty          // kitty, Ghostty: escape sequences with PNG
	graphicsITerm          // iTerm2, WezTerm, mintty: any format, as a file
)

// GraphicsOf detects from the environment how the terminal shows pictures. Multiplexers do not pass
// pictures on.
func GraphicsOf(env func(string) string) Graphics {
	term, program := env("TERM"), env("TERM_PROGRAM")
	switch {
	case env("TMUX") != "" || strings.HasPrefix(term, "screen") || strings.HasPrefix(term, "tmux") || term == "dumb":
		return graphicsNone
	case env("KITTY_WINDOW_ID") != "" || term == "xterm-kitty" || term == "xterm-ghostty" || strings.EqualFold(program, "ghostty"):
		return graphicsKitty
	case program == "iTerm.app" || program == "WezTerm" || program == "mintty" || env("LC_TERMINAL") == "iTerm2":
		return graphicsITerm
	}
	return graphicsNone
}

const (
	// maxShown bounds a picture to show, in bytes; a larger one is only saved.
	maxShown = 8 << 20

	// maxPixels bounds a picture that must be decoded to be shown.
	maxPixels = 16 << 20

	// pixelsPerColumn is the approximate width of a column. A picture that is wider than the
	// terminal is scaled to its width.
	pixelsPerColumn = 8
)

// Picture returns the escape sequences that show an image on a terminal of width columns, or "" if
// it cannot be shown. They contain the server's data only as base64.
func Picture(data []byte, how Graphics, width int) string {
	if how == graphicsNone || len(data) > maxShown {
		return ""
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width <= 0 || config.Height <= 0 {
		return "" // not a picture, whatever its type says
	}
	wide := width > 0 && config.Width > width*pixelsPerColumn
	if how == graphicsITerm {
		size := ""
		if wide {
			size = ";width=100%"
		}
		return fmt.Sprintf("\x1b]1337;File=inline=1;size=%d%s:%s\a", len(data), size, base64.StdEncoding.EncodeToString(data))
	}
	if format != "png" {
		if config.Width > maxPixels/config.Height {
			return ""
		}
		decoded, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			return ""
		}
		var again bytes.Buffer
		if err := png.Encode(&again, decoded); err != nil {
			return ""
		}
		data = again.Bytes()
	}
	// q=2: no response from the terminal, because nothing would read it
	control := "a=T,f=100,q=2,"
	if wide {
		control += fmt.Sprintf("c=%d,", width)
	}
	var out strings.Builder
	const chunk = 4096
	for text := base64.StdEncoding.EncodeToString(data); text != ""; control = "" {
		n, more := min(chunk, len(text)), 0
		if n < len(text) {
			more = 1
		}
		fmt.Fprintf(&out, "\x1b_G%sm=%d;%s\x1b\\", control, more, text[:n])
		text = text[n:]
	}
	return out.String()
}
