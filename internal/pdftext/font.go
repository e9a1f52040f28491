package pdftext

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// font tells what the codes of a string mean, and how wide their glyphs are.
type font struct {
	simple  *[256]string // the texts of codes of one byte, where known; nil: codes have more bytes
	spaces  []span       // of codes of several bytes
	meaning []span       // of ToUnicode, sorted
	unicode bool         // codes are UTF-16
	widths  []span       // sorted
	width   float64      // of other codes, in text space units of a size of 1
}

// span is a range of codes. The texts of the codes after the first end in the next characters.
type span struct {
	low, high uint32
	bytes     int // of the codes; 0: any
	text      string
	width     float64
}

// find returns the span of a code.
func find(all []span, code uint32) (span, bool) {
	i, _ := slices.BinarySearchFunc(all, code, func(s span, code uint32) int {
		if s.low <= code {
			return -1
		}
		return 1
	})
	if i > 0 && all[i-1].high >= code {
		return all[i-1], true
	}
	return span{}, false
}

func sorted(all []span) []span {
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	return all
}

// font reads a font.
func (f *file) font(v any) *font {
	r, is := v.(ref)
	if known := f.fonts[r]; is && known != nil {
		return known
	}
	d := f.dict(v)
	t := &font{width: 0.5}
	if is && len(f.fonts) < 1000 {
		f.fonts[r] = t
	}
	if s, ok := f.resolve(d["ToUnicode"]).(*stream); ok {
		t.meaning, t.spaces = f.cmap(s)
	}
	if f.resolve(d["Subtype"]) == name("Type0") {
		f.composite(t, d)
	} else {
		f.oneByte(t, d)
	}
	t.meaning, t.widths = sorted(t.meaning), sorted(t.widths)
	return t
}

func (f *file) composite(t *font, d dict) {
	switch e := f.resolve(d["Encoding"]).(type) {
	case *stream:
		_, t.spaces = f.cmap(e)
	case name:
		t.unicode = strings.Contains(string(e), "UCS2") || strings.Contains(string(e), "UTF16")
		t.spaces = []span{{high: 0xffff, bytes: 2}}
	}
	var below dict
	if all := f.list(d["DescendantFonts"]); len(all) > 0 {
		below = f.dict(all[0])
	}
	t.width = float64(f.int(below["DW"], 1000)) / 1000
	w := f.list(below["W"])
	for i := 0; i+1 < len(w); {
		first := f.int(w[i], 0)
		if each, ok := f.resolve(w[i+1]).(array); ok {
			for j, v := range each {
				t.widths = append(t.widths, span{low: uint32(first + j), high: uint32(first + j), width: f.thousandth(v)})
			}
			i += 2
		} else if i += 3; i <= len(w) {
			t.widths = append(t.widths, span{low: uint32(first), high: uint32(f.int(w[i-2], 0)), width: f.thousandth(w[i-1])})
		}
		f.spend(100)
	}
}

func (f *file) thousandth(v any) float64 {
	n, _ := f.resolve(v).(float64)
	return n / 1000
}

func (f *file) oneByte(t *font, d dict) {
	t.simple, t.spaces = new([256]string), nil
	about, base, _ := f.dict(d["FontDescriptor"]), "", 0
	if n, ok := f.resolve(d["BaseFont"]).(name); ok {
		base = string(n)
	}
	encoding := f.resolve(d["Encoding"])
	differences, _ := encoding.(dict)
	if differences != nil {
		encoding = f.resolve(differences["BaseEncoding"])
	}
	symbols := f.int(about["Flags"], 0)&4 != 0 || strings.HasPrefix(base, "Symbol") || strings.HasPrefix(base, "ZapfDingbats")
	for code := range 256 {
		t.simple[code] = standard(encoding, byte(code))
		if _, named := encoding.(name); symbols && !named && (code < 32 || code > 126) {
			t.simple[code] = ""
		}
	}
	if s, ok := f.resolve(about["FontFile"]).(*stream); ok && encoding == nil {
		head, _, _ := bytes.Cut(f.decode(s), []byte("eexec"))
		for _, m := range putCode().FindAllSubmatch(head, 256) {
			if code, err := strconv.ParseUint(string(m[1]), 10, 8); err == nil {
				t.simple[code] = glyph(string(m[2]))
			}
		}
	}
	code := 0
	for _, v := range f.list(differences["Differences"]) {
		switch v := f.resolve(v).(type) {
		case float64:
			code = int(v)
		case name:
			if code >= 0 && code < 256 {
				t.simple[code] = glyph(string(v))
			}
			code++
		}
	}

	unit := 0.001
	if m := f.list(d["FontMatrix"]); len(m) > 0 && f.resolve(d["Subtype"]) == name("Type3") {
		unit, _ = f.resolve(m[0]).(float64)
	}
	if strings.Contains(base, "Courier") {
		t.width = 0.6
	}
	first := f.int(d["FirstChar"], 0)
	widths := f.list(d["Widths"])
	if widths == nil { // one of the 14 fonts that every reader has
		for i, c := range helvetica {
			if t.width != 0.6 {
				t.widths = append(t.widths, span{low: uint32(32 + i), high: uint32(32 + i), width: float64(c-'0'+6) * 0.0278})
			}
		}
	}
	for i, v := range widths {
		n, _ := f.resolve(v).(float64)
		t.widths = append(t.widths, span{low: uint32(first + i), high: uint32(first + i), width: n * unit})
	}
}

var putCode = pattern.Lazy(`dup\s+(\d+)\s*/(\S+)\s+put`)

// helvetica has the widths of the ASCII characters in Helvetica: '0' + n is (n + 6) × 0.0278 of the size.
const helvetica = `447>>JB1668?4644>>>>>>>>>>44???>OBBDDB@FD4<B>HDFBFDB@DBLBB@444;>6>><>>4>>22<2H>>>>6<4><D<<<636?`

// next returns the first character of a string: its text, "" if that is not known, its bytes and its width.
func (t *font) next(s string) (text string, n int, width float64) {
	n = 1
	if t.simple == nil {
		n = t.size(s)
	}
	code := uint32(bigEndian([]byte(s[:n])))
	width = t.width
	if w, ok := find(t.widths, code); ok {
		width = w.width
	}
	if m, ok := find(t.meaning, code); ok && m.text != "" {
		return m.after(code), n, width
	}
	switch {
	case t.simple != nil:
		text = t.simple[code]
	case t.unicode:
		text = utf16Text(s[:n])
	}
	return text, n, width
}

// size returns how many bytes the first code of a string has.
func (t *font) size(s string) int {
	for n := 1; n <= min(4, len(s)); n++ {
		code := uint32(bigEndian([]byte(s[:n])))
		for _, sp := range t.spaces {
			if sp.bytes == n && sp.low <= code && code <= sp.high {
				return n
			}
		}
	}
	return min(2, len(s))
}

// after returns the text of a code of the span.
func (s span) after(code uint32) string {
	if code == s.low {
		return s.text
	}
	all := []rune(s.text)
	all[len(all)-1] += rune(code - s.low)
	return string(all)
}

func utf16Text(s string) string {
	units := make([]uint16, len(s)/2)
	for i := range units {
		units[i] = uint16(s[2*i])<<8 | uint16(s[2*i+1])
	}
	return string(utf16.Decode(units))
}

// cmap reads the meanings of codes, and the ranges of their bytes.
func (f *file) cmap(s *stream) (meaning, spaces []span) {
	p := &parser{data: f.decode(s)}
	f.spend(len(p.data))
	var args array
	code := func(v any) (uint32, int) {
		s, _ := v.(string)
		return uint32(bigEndian([]byte(s[:min(4, len(s))]))), len(s)
	}
	text := func(v any) string {
		switch v := v.(type) {
		case string:
			if len(v) == 1 {
				return string(rune(v[0]))
			}
			return utf16Text(v[:min(64, len(v))])
		case name:
			return glyph(string(v))
		}
		return ""
	}
	for {
		v := p.next()
		word, is := v.(keyword)
		if !is {
			if len(args) < maxValues {
				args = append(args, v)
			}
			continue
		}
		switch word {
		case "":
			return meaning, spaces
		case "endcodespacerange":
			for i := 0; i+1 < len(args) && len(spaces) < 100; i += 2 {
				low, n := code(args[i])
				high, _ := code(args[i+1])
				spaces = append(spaces, span{low: low, high: high, bytes: n})
			}
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				at, _ := code(args[i])
				meaning = append(meaning, span{low: at, high: at, text: text(args[i+1])})
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				low, _ := code(args[i])
				high, _ := code(args[i+1])
				each, ok := args[i+2].(array)
				if !ok {
					meaning = append(meaning, span{low: low, high: high, text: text(args[i+2])})
				}
				for j, v := range each {
					meaning = append(meaning, span{low: low + uint32(j), high: low + uint32(j), text: text(v)})
				}
			}
		}
		args = nil
	}
}

// standard returns the character of a code in an encoding.
func standard(encoding any, code byte) string {
	switch encoding {
	case name("WinAnsiEncoding"):
		return string(charmap.Windows1252.DecodeByte(code))
	case name("MacRomanEncoding"):
		return string(charmap.Macintosh.DecodeByte(code))
	}
	switch {
	case code == '\'':
		return "’"
	case code == '`':
		return "‘"
	case code < 127:
		return string(rune(code))
	case code < 0xa1:
		return ""
	}
	if r := upper[code-0xa1]; r != ' ' {
		return string(r)
	}
	return ""
}

// upper is the standard encoding from 0xa1 on.
var upper = []rune("¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß    ")

// glyph returns the text of a named glyph, or "".
func glyph(name string) string {
	if text := named()[name]; text != "" {
		return text
	}
	if base, _, dotted := strings.Cut(name, "."); dotted && base != "" {
		return glyph(base)
	}
	if parts := strings.Split(name, "_"); len(parts) > 1 && len(parts) < 8 {
		all := ""
		for _, p := range parts {
			all += glyph(p)
		}
		return all
	}
	for _, begin := range []string{"uni", "u"} {
		if hex, ok := strings.CutPrefix(name, begin); ok && len(hex) >= 4 && len(hex) <= 6 {
			if n, err := strconv.ParseUint(hex, 16, 32); err == nil {
				return string(rune(n))
			}
		}
	}
	switch {
	case len(name) == 1:
		return name
	case name != "" && strings.HasPrefix(name[1:], "commaaccent"):
		return norm.NFC.String(name[:1] + "\u0327")
	case name != "":
		if accent := accents[name[1:]]; accent != "" {
			return norm.NFC.String(name[:1] + accent)
		}
	}
	return ""
}

var accents = map[string]string{
	"grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303", "macron": "\u0304", "breve": "\u0306", "dotaccent": "\u0307",
	"dieresis": "\u0308", "ring": "\u030a", "hungarumlaut": "\u030b", "caron": "\u030c", "cedilla": "\u0327", "ogonek": "\u0328",
}

var named = sync.OnceValue(func() map[string]string {
	words := strings.Fields(glyphNames)
	all := map[string]string{"space": " ", "nbspace": " ", "nonbreakingspace": " "}
	for i := 0; i+1 < len(words); i += 2 {
		all[words[i]] = words[i+1]
	}
	return all
})

// glyphNames are those of Latin texts, Greek and common symbols.
const glyphNames = `exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk * plus +
comma , hyphen - minus − period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal =
greater > question ? at @ bracketleft [ backslash \ bracketright ] asciicircum ^ underscore _ grave ` + "`" + ` braceleft { bar | braceright }
asciitilde ~ exclamdown ¡ cent ¢ sterling £ currency ¤ yen ¥ brokenbar ¦ section § dieresis ¨ copyright © ordfeminine ª guillemotleft «
logicalnot ¬ registered ® macron ¯ degree ° plusminus ± twosuperior ² threesuperior ³ acute ´ mu µ paragraph ¶ periodcentered · cedilla ¸
onesuperior ¹ ordmasculine º guillemotright » onequarter ¼ onehalf ½ threequarters ¾ questiondown ¿ AE Æ ae æ Eth Ð eth ð Oslash Ø oslash ø Thorn Þ
thorn þ germandbls ß multiply × divide ÷ dotlessi ı Lslash Ł lslash ł OE Œ oe œ Dcroat Đ dcroat đ florin ƒ circumflex ˆ caron ˇ breve ˘
dotaccent ˙ ring ˚ ogonek ˛ tilde ˜ hungarumlaut ˝ endash – emdash — quoteleft ‘ quoteright ’ quotesinglbase ‚ quotedblleft “ quotedblright ”
quotedblbase „ dagger † daggerdbl ‡ bullet • ellipsis … perthousand ‰ guilsinglleft ‹ guilsinglright › fraction ⁄ Euro € trademark ™
ff ff fi fi fl fl ffi ffi ffl ffl fj fj IJ IJ ij ij Alpha Α Beta Β Gamma Γ Delta Δ Epsilon Ε Zeta Ζ Eta Η Theta Θ Iota Ι Kappa Κ Lambda Λ Mu Μ Nu Ν Xi Ξ
Omicron Ο Pi Π Rho Ρ Sigma Σ Tau Τ Upsilon Υ Phi Φ Chi Χ Psi Ψ Omega Ω alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ
lambda λ nu ν xi ξ omicron ο pi π rho ρ sigma σ sigma1 ς tau τ upsilon υ phi φ chi χ psi ψ omega ω arrowleft ← arrowright → arrowup ↑ arrowdown ↓
arrowboth ↔ arrowdblright ⇒ infinity ∞ partialdiff ∂ summation ∑ product ∏ integral ∫ radical √ approxequal ≈ notequal ≠ lessequal ≤ greaterequal ≥
element ∈ universal ∀ existential ∃ intersection ∩ union ∪ emptyset ∅ asteriskmath ∗ openbullet ◦ visiblespace ␣ checkmark ✓ lozenge ◊`
