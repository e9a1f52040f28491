package pdftext_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/pdftext"
)

const hello = "BT /F1 12 Tf 72 700 Td (Hello caf\\351,) Tj 0 -14 Td (line two) Tj ET"

// read returns the text of the only page.
func read(t *testing.T, data []byte) string {
	t.Helper()
	text, err := pdftext.Extract(t.Context(), data, 1<<20)
	if err != nil {
		t.Fatalf("Extract: %v", err)
	}
	return strings.Join(text.Pages, "\f")
}

// Operators of text become words and lines.
func TestLayout(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"two lines":          {hello, "Hello café,\nline two"},
		"kerning":            {"BT /F1 12 Tf 72 700 Td [(A) 70 (V) 90 (AT) -300 (now)] TJ ET", "AVAT now"},
		"words that are set": {"BT /F1 12 Tf 1 0 0 1 72 700 Tm (one) Tj 1 0 0 1 97 700 Tm (two) Tj 1 0 0 1 200 700 Tm (three) Tj ET", "one two\tthree"},
		"paragraphs":         {"BT /F1 12 Tf 14 TL 72 700 Td (a) Tj T* (b) Tj 0 -40 Td (c) Tj (d) ' 1 2 (e) \" ET", "a\nb\n\nc\nd\ne"},
		"rotated":            {"BT /F1 12 Tf 0 1 -1 0 72 100 Tm (up) Tj 0 -14 Td (and on) Tj ET", "up\nand on"},
		"scaled":             {"q 0.1 0 0 0.1 0 0 cm BT /F1 120 Tf 720 7000 Td (big) Tj 0 -140 TD (next) Tj ET Q", "big\nnext"},
		"bold by two":        {"BT /F1 12 Tf 72 700 Td (Title) Tj ET BT /F1 12 Tf 72.3 700 Td (Title) Tj ET", "Title"},
		"strings":            {"BT /F1 12 Tf 72 700 Td (a\\(b\\)(c)\\\nd\\0501\\053) Tj <48 656C6C6F2> Tj ET", "a(b)(c)d(1+Hello "},
		"a picture":          {"BI /W 1 /H 1 ID \x00(x) Tj EI1 \nEI Q BT /F1 12 Tf 72 700 Td (after) Tj ET", "after"},
		"other text":         {"/Span <</ActualText <FEFF00660066>>> BDC BT /F1 12 Tf 72 700 Td (x) Tj (y) Tj EMC (z) Tj ET", "ffz"},
		"control characters": {"BT /F1 12 Tf 72 700 Td (a\\033[31mb) Tj ET", "a\uFFFD[31mb"},
		"Ghostscript":        {"BT /F1 10 Tf 72 700 Td (th) Tj 2.8 Tc (et) Tj 0 Tc (own) Tj ET", "the town"},
		"no operator":        {"1 2 3 BT ] >> } (x /F1 12 Tf", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data := pdf(pages("null", flate("", tt.content), stream("", "BT /F1 9 Tf (end) Tj ET"))...)
			if got := read(t, data); got != strings.TrimRight(tt.want, " ")+"\fend" {
				t.Errorf("the text is %q, want %q", got, tt.want)
			}
		})
	}
}

// Codes mean what their font says, in each way in which fonts say it.
func TestFonts(t *testing.T) {
	cmap := "/CIDInit /ProcSet findresource begin 1 begincodespacerange <0000> <FFFF> endcodespacerange\n2 beginbfchar <0001> <0048> <0002> <D83DDE00> endbfchar\n" +
		"2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<00660066> <03A9>] endbfrange endcmap"
	wide := "<</Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<</DW 600 /W [1 [500 600] 16 18 550]>>] /ToUnicode 5 0 R>>"
	tests := map[string]struct{ font, more, text, want string }{
		"ToUnicode":         {wide, flate("", cmap), "<0001 0002 0010 0012 0020 0021>", "H😀acffΩ"},
		"no meaning":        {wide, flate("", cmap), "<0001 0099 0011>", "H\uFFFDb"},
		"UCS2":              {"<</Subtype /Type0 /Encoding /UniGB-UCS2-H /DescendantFonts [<<>>]>>", "null", "<4F60597D>", "你好"},
		"mixed lengths":     {"<</Subtype /Type0 /Encoding 5 0 R /ToUnicode 5 0 R /DescendantFonts [<<>>]>>", stream("", "2 begincodespacerange <00> <7F> <8140> <9FFC> endcodespacerange 2 beginbfchar <41> <0061> <8140> <3042> endbfchar"), "<41 8140 41>", "aあa"},
		"Differences":       {"<</Subtype /Type1 /Encoding <</BaseEncoding /MacRomanEncoding /Differences [1 /ffi /eacute 65 /uni4F60 /u1F600 /f_i /a.sc /Scommaaccent /nosuch]>>>>", "null", "(\\001\\002ABCDEFz\\212)", "ffié你😀fiaŞ\uFFFDzä"},
		"standard encoding": {"<</Subtype /Type1 /BaseFont /Times-Roman>>", "null", "(it's \\256ne \\341\\361\\373 \\320)", "it’s fine Ææß —"},
		"Type 1 program":    {"<</Subtype /Type1 /FontDescriptor <</Flags 4 /FontFile 5 0 R>> /FirstChar 1 /LastChar 2 /Widths [500 500]>>", stream("", "/Encoding 256 array\ndup 1 /alpha put\ndup 2/beta put\nreadonly def currentfile eexec xyz"), "(\\001\\002)", "αβ"},
		"Type 3":            {"<</Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FirstChar 97 /Widths [50 50] /Encoding <</Differences [97 /x /y]>>>>", "null", "(ab)", "xy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := pages(tt.font, stream("", "BT /F2 12 Tf 72 700 Td "+tt.text+" Tj ET"))
			objects[4] = tt.more
			if got := read(t, pdf(objects...)); got != tt.want {
				t.Errorf("the text is %q, want %q", got, tt.want)
			}
		})
	}
}

// The text is the same in each form in which a file can have it.
func TestForms(t *testing.T) {
	want := "Hello café,\nline two"
	with := func(content string) []byte { return pdf(pages("null", content)...) }
	whole := with(flate("", hello))
	form := pages("null", stream("", "q 1 0 0 1 10 10 cm /X Do Q"))
	form[4] = flate("/Type /XObject /Subtype /Form /Matrix [1 0 0 1 0 0] /Resources 3 0 R", hello)
	parts := pages("null", "[8 0 R 9 0 R]")
	parts = append(parts, flate("", hello[:30]+" (Hello caf\\351,) Tj"), flate("", " 0 -14 Td (line two) Tj ET"))
	parts[7] = flate("", "BT /F1 12 Tf 72 700 Td (Hello caf\\351,) Tj")
	newer := pages("null", stream("", "BT (old) Tj ET"))
	old := pdf(newer...)
	update := fmt.Sprintf("7 0 obj\n%s\nendobj\n", flate("", hello))
	updated := fmt.Sprintf("%s%sxref\n7 1\n%010d 00000 n \ntrailer\n<</Size 8 /Root 1 0 R /Prev %d>>\nstartxref\n%d\n%%%%EOF", old, update, len(old), strings.LastIndex(string(old), "xref\n0"), len(old)+len(update))
	tests := map[string][]byte{
		"plain":           with(stream("", hello)),
		"Flate":           whole,
		"object streams":  packed(pages("null", flate("", hello))...),
		"ASCII85":         with(stream("/Filter [/ASCII85Decode /FlateDecode]", ascii85Of(deflated(hello)))),
		"hexadecimal":     with(stream("/Filter /AHx", fmt.Sprintf("%x>", hello))),
		"runs":            with(stream("/Filter /RunLengthDecode", string(rune(len(hello)-1))+hello+"\x80")),
		"LZW":             with(stream("/Filter /LZWDecode", lzw(hello))),
		"a form":          pdf(form...),
		"parts":           pdf(parts...),
		"an update":       []byte(updated),
		"junk before":     append([]byte("HTTP/1.1 200\r\n\r\n"), whole...),
		"wrong offsets":   []byte(strings.ReplaceAll(string(whole), "000000", "000001")),
		"cut":             whole[:strings.Index(string(whole), "xref")],
		"cut, packed":     packedCut(t, pages("null", flate("", hello))...),
		"wrong length":    []byte(strings.Replace(string(with(stream("", hello))), fmt.Sprintf("/Length %d", len(hello)), "/Length 3", 1)),
		"indirect length": pdf(append(pages("null", strings.Replace(stream("", hello), fmt.Sprintf("/Length %d", len(hello)), "/Length 8 0 R", 1)), fmt.Sprint(len(hello)))...),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if got := read(t, data); got != want {
				t.Errorf("the text is %q, want %q", got, want)
			}
		})
	}
}

func packedCut(t *testing.T, objects ...string) []byte {
	t.Helper()
	data := string(packed(objects...))
	return []byte(data[:strings.LastIndex(data, "startxref")])
}

// lzw encodes without a table of texts that come again, so that codes grow as the table does.
func lzw(data string) string {
	var out []byte
	bits, have, next, width := 0, 0, 258, 9
	put := func(code int) {
		bits, have = bits<<width|code, have+width
		for have >= 8 {
			have -= 8
			out = append(out, byte(bits>>have))
			bits &= 1<<have - 1
		}
	}
	put(256)
	for i, c := range []byte(data) {
		put(int(c))
		if i > 0 {
			next++
		}
		for width < 12 && next+1 >= 1<<width {
			width++
		}
	}
	put(257)
	return string(append(out, byte(bits<<(8-have))))
}

// A file without text is refused in words, and a long one is cut between pages.
func TestRefused(t *testing.T) {
	whole := string(pdf(pages("null", stream("", hello))...))
	for name, tt := range map[string]struct {
		data string
		want error
	}{
		"not a PDF":   {"hello", pdftext.ErrDamaged},
		"no objects":  {"%PDF-1.4\n", pdftext.ErrDamaged},
		"encrypted":   {strings.Replace(whole, "/Root", "/Encrypt 9 0 R /Root", 1), pdftext.ErrEncrypted},
		"a picture":   {string(pdf(pages("null", stream("", "q 100 0 0 100 0 0 cm /X Do Q"))...)), pdftext.ErrNoText},
		"no contents": {string(pdf("<</Pages 2 0 R>>", "<</Kids [<</Type /Page>>]>>")), pdftext.ErrNoText},
	} {
		if text, err := pdftext.Extract(t.Context(), []byte(tt.data), 1000); !errors.Is(err, tt.want) {
			t.Errorf("%s: Extract = %+v, %v, want %v", name, text, err, tt.want)
		}
	}
	long := stream("", "BT /F1 12 Tf ("+strings.Repeat("word ", 100)+") Tj ET")
	data := pdf(pages("null", long, long, long)...)
	text, err := pdftext.Extract(t.Context(), data, 1000)
	if err != nil || len(text.Pages) != 2 || text.All != 3 || !strings.HasSuffix(text.String(), "word\n[the text is too long: page 3 of 3 is left out]\n") {
		t.Errorf("Extract of 1,500 bytes = %+v, %v", text, err)
	}
	if _, err := pdftext.Extract(t.Context(), data, 100); !errors.Is(err, pdftext.ErrTooMuch) {
		t.Errorf("Extract of a page that does not fit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pdftext.Extract(ctx, data, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("Extract after the end of its context: %v", err)
	}
}

// The words are those that pdftotext finds in a file that Chromium writes.
func TestPeers(t *testing.T) {
	var paths []string
	for _, name := range []string{"chromium", "pdftotext"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		paths = append(paths, path)
	}
	dir := t.TempDir()
	page, file := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.pdf")
	html := `<!doctype html><meta charset=utf-8><h1>A report – Übersicht</h1><p>The office “efficient” costs 12 € in naïve façades. Ελληνικά, Русский.
<table><tr><th>Item<th>Price</tr><tr><td>Ember Stove<td>129.00</tr></table><p style="page-break-before:always">` + strings.Repeat("Some longer text that wraps at the end of its lines. ", 40)
	if err := os.WriteFile(page, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), paths[0], "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+file, page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("Chromium prints nothing: %v\n%s", err, out)
	}
	want, err := exec.CommandContext(t.Context(), paths[1], file, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Fields(read(t, data)), strings.Fields(string(want)); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the words are\n%q\npdftotext has\n%q", got, want)
	}
}

func FuzzExtract(f *testing.F) {
	for _, objects := range [][]string{pages("null", stream("", hello)), pages("<</Subtype /Type0 /Encoding /Identity-H /ToUnicode 5 0 R>>", flate("", hello))} {
		f.Add(pdf(objects...))
		f.Add(packed(objects...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, err := pdftext.Extract(t.Context(), data, 1<<20); err == nil && (!utf8.ValidString(text.String()) || strings.Contains(text.String(), "\x1b")) {
			t.Errorf("the text is %q", text)
		}
	})
}
