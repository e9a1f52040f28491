package terminal

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color/palette"
	"image/gif"
	"image/png"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestGraphicsOf(t *testing.T) {
	tests := []struct {
		env  map[string]string
		want Graphics
	}{
		{map[string]string{"TERM": "xterm-256color"}, graphicsNone},
		{map[string]string{"TERM": "xterm-kitty"}, graphicsKitty},
		{map[string]string{"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, graphicsKitty},
		{map[string]string{"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, graphicsKitty},
		{map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, graphicsITerm},
		{map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, graphicsITerm},
		{map[string]string{"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1", "TMUX": "/tmp/tmux,1,0"}, graphicsNone},
		{map[string]string{"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, graphicsNone},
	}
	for _, tt := range tests {
		if got := GraphicsOf(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("GraphicsOf(%v) = %v, want %v", tt.env, got, tt.want)
		}
	}
}

func pictures(t *testing.T, width int) (asPNG, asGIF []byte) {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, 7), palette.Plan9)
	rnd := rand.New(rand.NewPCG(1, 2)) // noise does not compress
	for i := range img.Pix {
		img.Pix[i] = byte(rnd.IntN(256))
	}
	var p, g bytes.Buffer
	if err := png.Encode(&p, img); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&g, img, nil); err != nil {
		t.Fatal(err)
	}
	return p.Bytes(), g.Bytes()
}

// TestPictureKitty decodes the output: chunks of at most 4096 bytes that form a PNG, whatever the
// format of the picture.
func TestPictureKitty(t *testing.T) {
	asPNG, asGIF := pictures(t, 2000)
	for name, data := range map[string][]byte{"png": asPNG, "gif": asGIF} {
		out := Picture(data, graphicsKitty, 80)
		chunks := regexp.MustCompile("\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\\\").FindAllStringSubmatch(out, -1)
		var text, whole strings.Builder
		for i, c := range chunks {
			whole.WriteString(c[0])
			text.WriteString(c[2])
			want := "m=1"
			if i == 0 {
				want = "a=T,f=100,q=2,c=80,m=1"
			} else if i == len(chunks)-1 {
				want = "m=0"
			}
			if c[1] != want || len(c[2]) > 4096 {
				t.Errorf("%s: chunk %d has %q and %d bytes, want %q and at most 4096", name, i, c[1], len(c[2]), want)
			}
		}
		if len(chunks) < 2 || whole.String() != out {
			t.Fatalf("%s: %d chunks are not all of %d bytes", name, len(chunks), len(out))
		}
		raw, err := base64.StdEncoding.DecodeString(text.String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || got.Width != 2000 || got.Height != 7 {
			t.Errorf("%s: the terminal gets %+v, %v", name, got, err)
		}
	}
}

func TestPictureITerm(t *testing.T) {
	_, data := pictures(t, 10)
	got := Picture(data, graphicsITerm, 80)
	if !strings.HasPrefix(got, "\x1b]1337;File=inline=1;size=") || !strings.HasSuffix(got, ":"+base64.StdEncoding.EncodeToString(data)+"\a") {
		t.Errorf("picture = %q", got)
	}
}

// TestNoPicture: data that is not a picture, whatever its type says, does not reach the terminal.
func TestNoPicture(t *testing.T) {
	asPNG, _ := pictures(t, 10)
	for name, data := range map[string][]byte{"empty": nil, "escape": []byte("\x1b]0;title\a"), "cut": asPNG[:12], "long": make([]byte, maxShown+1)} {
		for _, how := range []Graphics{graphicsKitty, graphicsITerm} {
			if got := Picture(data, how, 80); got != "" {
				t.Errorf("%s: picture = %q, want nothing", name, got)
			}
		}
	}
	if got := Picture(asPNG, graphicsNone, 80); got != "" {
		t.Errorf("a terminal without pictures gets %q", got)
	}
}
