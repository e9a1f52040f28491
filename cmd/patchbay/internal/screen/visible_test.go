package screen

import "testing"

func TestVisible(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "text\twith\nlines", "text\twith\nlines"},
		{"escape", "\x1b[31mred\x1b[0m\a", "␛[31mred␛[0m␇"},
		{"C1 and delete", "a\u009bb\x7f", "a⟨U+009B⟩b␡"},
		{"line ends", "a\r\nb\rc", "a\nb␍c"},
		{"direction", "abc\u202egnp.exe\u202c", "abc⟨U+202E⟩gnp.exe⟨U+202C⟩"},
		{"isolates", "\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"},
		{"zero width", "pay\u200bpal\ufeff", "pay⟨U+200B⟩pal⟨U+FEFF⟩"},
		{"joiner in a word", "pass\u200dword", "pass⟨U+200D⟩word"},
		{"tags", "hi\U000e0068\U000e0069", "hi⟨U+E0068⟩⟨U+E0069⟩"},
		{"selectors that carry data", "x\ufe01\ufe02\U000e0101", "x⟨U+FE01⟩⟨U+FE02⟩⟨U+E0101⟩"},
		{"fillers", "a\u3164b", "a⟨U+3164⟩b"},
		{"separators", "a\u2028b", "a⟨U+2028⟩b"},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
		{"emoji", "❤\ufe0f 👩\u200d🚀 1\ufe0f\u20e3", "❤\ufe0f 👩\u200d🚀 1\ufe0f\u20e3"},
		{"Persian", "می\u200cخواهم", "می\u200cخواهم"},
		{"letters", "日本語 Ünïcödé e\u0301", "日本語 Ünïcödé e\u0301"},
	}
	for _, tt := range tests {
		if got := Visible(tt.text); got != tt.want {
			t.Errorf("%s: Visible(%q) = %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "👩\u200d🚀": 2, "❤\ufe0f": 2, "👍🏽": 2, "ｱ": 1, "Ａ": 2, "🇩🇪": 2,
	} {
		if got := Columns(text); got != want {
			t.Errorf("Columns(%q) = %d, want %d", text, got, want)
		}
	}
}
