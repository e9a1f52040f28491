package fetch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func mustURL(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func rendered(t testing.TB, source string, plain bool) document {
	t.Helper()
	doc, err := render(context.Background(), source, mustURL(t, "https://example.com/a/b?c"), plain, 1<<20)
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return doc
}

func TestMarkdown(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"paragraphs", "<p>One\n  two</p><p>three<p>four", "One two\n\nthree\n\nfour"},
		{"headings", "<h1>A <em>b</em></h1><h3>C<br>d</h3>", "# A _b_\n\n### C d"},
		{"text without elements", "hello  world", "hello world"},
		{"emphasis", "a<b> bold </b>and <i>it</i>, <strong><em>both</em></strong> <del>no</del>", "a **bold** and _it_, **_both_** ~~no~~"},
		{"nested emphasis", "<b>a <i>b</i> c</b>", "**a _b_ c**"},
		{"emphasis wrongly nested", "<i>a <b>b</i> c</b> d", "_a_ **_b_ c** d"},
		{"emphasis of nothing", "a<b> </b>b<i></i>c", "a bc"},
		{"emphasis never opened", "a</b></i> b", "a b"},
		{"link", `<a href="/x y?q=(1)">the <b>link</b></a>.`, "[the **link**](https://example.com/x%20y?q=%281%29)."},
		{"link in emphasis", `<b>see <a href=d>this</a> too</b>`, "**see** [**this**](https://example.com/a/d) **too**"},
		{"link with brackets", `<a href=http://h/>[1]</a>`, `[\[1\]](http://h/)`},
		{"link within the page", `<a href=#top>up</a>`, "up"},
		{"link that is a script", `<a href="javascript:alert(1)">run</a> <a href="data:text/html,x">d</a>`, "run d"},
		{"link with nothing in it", `<a href=/x> </a>end`, "end"},
		{"link around blocks", `<a href=/x><h2>T</h2><p>p</p></a>q`, "## [T](https://example.com/x)\n\n[p](https://example.com/x)\n\nq"},
		{"base", `<base href="http://other.example/dir/"><a href=x>l</a>`, "[l](http://other.example/dir/x)"},
		{"bases", `<base href=/one/><base href=two/><a href=x>l</a>`, "[l](https://example.com/one/x)"},
		{"base that is no place", `<base href="javascript:x"><a href=x>l</a>`, "[l](https://example.com/a/x)"},
		{"image", `<p>see <img src=i.png alt="a  cat"> <img src=spacer.gif></p>`, "see ![a cat](https://example.com/a/i.png)"},
		{"image in a link", `<a href=/x><img src=i.png alt=cat></a>`, "[![cat](https://example.com/a/i.png)](https://example.com/x)"},
		{"image as data", `<img src="data:image/png;base64,xyz" alt=cat>`, "cat"},
		{"code", "use <code>a*b_c</code> and <code>`x`</code>", "use `a*b_c` and `` `x` ``"},
		{"break", "one<br>two<br><br><br>three<br>", "one  \ntwo\n\nthree"},
		{"list", "<ul><li>a<li>b <b>c</b></ul><p>d", "- a\n- b **c**\n\nd"},
		{"ordered list", `<p>x<ol start=9><li>a</li><li><p>b</p><p>c</p></li></ol>`, "x\n\n9. a\n10. b\n\n    c"},
		{"nested lists", "<ul><li>a<ul><li>b</li></ul></li><li>c<ol><li>d</ol></ul>", "- a\n  - b\n- c\n  1. d"},
		{"definitions", "<dl><dt>T<dd>one<dd>two<dt>U<dd>three</dl>", "T\n: one\n: two\n\nU\n: three"},
		{"item without a list", "<li>a</li>b", "- a\n\nb"},
		{"quotation", "a<blockquote><p>b</p><p>c</p></blockquote>d", "a\n\n> b\n>\n> c\n\nd"},
		{"quotation with a list", "<blockquote><ul><li>a<li>b</ul></blockquote>", "> - a\n> - b"},
		{"rule", "a<hr>b", "a\n\n---\n\nb"},
		{"pre", "a<pre><code class='x language-go'>if  x {\n\t&lt;y\n}\n</code></pre>b", "a\n\n```go\nif  x {\n\t<y\n}\n```\n\nb"},
		{"pre with a fence", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"},
		{"pre of elements", "<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```"},
		{"pre in a list", "<ul><li>a<pre>b\n\nc</pre></ul>", "- a\n\n  ```\n  b\n\n  c\n  ```"},
		{"table", "<table><caption>C</caption><tr><th>A<th>B</tr><tr><td>1|2</td><td><p>x</p><p>y</p></td></tr></table>z", "C\n\n| A | B |\n| --- | --- |\n| 1\\|2 | x y |\n\nz"},
		{"table with a body", "<table>\n<thead>\n<tr>\n<th>A</th>\n<th>-</th>\n</tr></thead>\n<tbody><tr>\n<td><b>1<td><code>a|b</code></tbody></table>", "| A | - |\n| --- | --- |\n| **1** | `a\\|b` |"},
		{"table with a list", "<table><tr><td>a<td><ul><li>b<li>c</ul></table>", "| a | • b • c |\n| --- | --- |"},
		{"table for layout", "<table><tr><td>menu<td><h1>T</h1><p>text<table><tr><td>a<td>b</table></table>", "menu\n\n# T\n\ntext\n\n| a | b |\n| --- | --- |"},
		{"table of one column", "<table><tr><td>a<tr><td>b</table>", "a\n\nb"},
		{"marks that are text", "*a* _b_ snake_case `c` [d](e) <f> &lt;g&gt; 1 < 2 \\ ~~h~~", `\*a\* \_b\_ snake_case \` + "`c\\`" + ` [d\](e) \<g> 1 < 2 \\ \~\~h\~\~`},
		{"beginnings that are text", "<p># a<p>&gt; b<p>- c<p>1. d<p>2024) e<p>--- <p>+ f<p>#g<p>1.5<p>-h", "\\# a\n\n\\> b\n\n\\- c\n\n1\\. d\n\n2024\\) e\n\n\\---\n\n\\+ f\n\n#g\n\n1.5\n\n-h"},
		{"left out", "a<script>x<b></script><style>y</style><nav>n<nav>m</nav>o</nav><svg><title>t</title><text>u</text></svg><noscript>p</noscript><!-- c --><button>q</button>b", "ab"},
		{"hidden", "a<div hidden>x<div>y</div></div><span aria-hidden=true>z</span><p style='color:red; DISPLAY : none'>w<p>b", "a\n\nb"},
		{"footer of the page", "<article>a<footer>b</footer></article><footer>c</footer>", "a\n\nb"},
		{"main", "<header>h</header><main><h1>T</h1><p>text</main><p>after", "# T\n\ntext"},
		{"main by role", "<div>h<div role=main>a<div>b</div>c</div>d</div>", "a\n\nb\n\nc"},
		{"main without text", "<main><script>x</script></main><p>after", "after"},
		{"main with something never closed", "<p>before</p><main>a<nav></main>", "a"},
		{"main in main", "b<main><div role=main>a</div></main>c", "a"},
		{"main with a pre never closed", "b<main><pre>a</main>after", "```\na\n```"},
		{"quotes in pre", "<pre>x<sup>2</sup> <q>y</q></pre>", "```\nx^2 \"y\"\n```"},
		{"two mains", "<main>a</main><main>b</main>", "a\n\nb"},
		{"super and subscript", "10<sup>6</sup> H<sub>2</sub>O", "10^6 H2O"},
		{"quotes", "he said <q>no</q>.", `he said "no".`},
		{"entities", "&amp;amp; &copy; &#x1F600; a&nbsp;b &bogus;", "&amp; © 😀 a b &bogus;"},
		{"a heading's sign", "<h2>Title<a href=#t>¶</a></h2><h3><a href=#u>§</a>U <b>v</b></h3><h4><a href=#w>W</a>!</h4>", "## Title\n\n### U **v**\n\n#### W!"},
		{"a sign outside of a heading", "<p>a<a href=#t>¶</a></p>", "a¶"},
		{"never closed", "<div><ul><li><b><a href=/x>y", "- [**y**](https://example.com/x)"},
		{"closed too often", "</div></ul></table></td>a</p></pre></main>", "a"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rendered(t, tt.html, false).text); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.html, diff)
			}
		})
	}
}

func TestPlainText(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"no marks", "<h1>T</h1><p>a *b* <b>c</b> <a href=/x>d</a> <code>e</code> <img alt=f src=g>", "T\n\na *b* c d e f"},
		{"list", "<ul><li>a<li>b</ul>", "- a\n- b"},
		{"table", "<table><tr><td>a<td>b<tr><td>c|<td>d</table>", "a\tb\nc|\td"},
		{"pre", "<pre>a\n  b</pre>", "a\n  b"},
		{"break", "a <br> b", "a\nb"},
		{"beginnings", "<p># a<p>- b", "# a\n\n- b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rendered(t, tt.html, true).text); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.html, diff)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for source, want := range map[string]string{
		"<title> A &amp;\n b </title>c":              "A & b",
		"<svg><title>icon</title></svg><title>x":     "x",
		"<title>first</title><title>second</title>a": "first",
		"a": "",
	} {
		if got := rendered(t, source, false).title; got != want {
			t.Errorf("title of %q = %q, want %q", source, got, want)
		}
	}
}

// hostileMarkup is HTML that is slow or large for who treats it like any other. Each grows to
// about n bytes.
var hostileMarkup = map[string]func(n int) string{
	"quotations":    func(n int) string { return strings.Repeat("<blockquote>", n/24) + strings.Repeat("a<br>", n/10) },
	"lists":         func(n int) string { return strings.Repeat("<ol><li>x", n/9) },
	"end tags":      func(n int) string { return strings.Repeat("<ul><li>", n/16) + strings.Repeat("</blockquote>", n/26) },
	"styles":        func(n int) string { return "<p>" + strings.Repeat("<b a=1><i>", n/20) + strings.Repeat("<p>x", n/8) },
	"style changes": func(n int) string { return strings.Repeat("<b>x</b>y", n/9) },
	"links": func(n int) string {
		return "<base href=//h/" + strings.Repeat("x", 1900) + "/>" + strings.Repeat("<a href=a>x</a>", n/15)
	},
	"bases": func(n int) string { return strings.Repeat("<base href=x/>", n/14) },
	"signs": func(n int) string {
		return "<h1>" + strings.Repeat("<b>x</b>y", n/18) + strings.Repeat("<a href=#x>¶</a>", n/36)
	},
	"open links": func(n int) string { return strings.Repeat("<a href=x>", n/10) },
	"brackets":   func(n int) string { return strings.Repeat("[", n) },
	"backticks":  func(n int) string { return "<code>" + strings.Repeat("`", n) },
	"code spans": func(n int) string { return strings.Repeat("<code>`</code>x", n/15) },
	"columns": func(n int) string {
		return "<table><tr>" + strings.Repeat("<td>", n/8) + strings.Repeat("<tr><td>x", n/18)
	},
	"colspan":        func(n int) string { return "<table>" + strings.Repeat("<tr><td colspan=1000>x<td>y", n/27) },
	"tables":         func(n int) string { return strings.Repeat("<table><td>", n/11) },
	"breaks":         func(n int) string { return strings.Repeat("<br>x", n/5) },
	"spaces":         func(n int) string { return strings.Repeat("<i> </i>", n/8) },
	"attributes":     func(n int) string { return "<p " + strings.Repeat("hidden ", n/7) },
	"pre":            func(n int) string { return strings.Repeat("<pre><div>x", n/11) },
	"comment":        func(n int) string { return "<!--" + strings.Repeat("<!-", n/3) },
	"script":         func(n int) string { return strings.Repeat("<script><!--", n/12) },
	"angle brackets": func(n int) string { return strings.Repeat("<", n) },
	"ampersands":     func(n int) string { return strings.Repeat("&", n) },
	"titles":         func(n int) string { return strings.Repeat("<title>x", n/8) },
	"mains":          func(n int) string { return strings.Repeat("<main>x", n/7) },
	"hidden":         func(n int) string { return strings.Repeat("<p hidden>x", n/11) },
}

// Hostile HTML takes milliseconds. Anything quadratic takes minutes at this size.
func TestMarkupIsRenderedInOnePass(t *testing.T) {
	for name, source := range hostileMarkup {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			s := source(1 << 20)
			doc, err := render(ctx, s, mustURL(t, "http://example.com/"), false, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if most := 32 << 20; len(doc.text) > most {
				t.Errorf("%d bytes became %d", len(s), len(doc.text))
			}
		})
	}
}

func TestRenderStops(t *testing.T) {
	doc, err := render(context.Background(), strings.Repeat("<p>word ", 10_000), mustURL(t, "http://h/"), false, 1000)
	if err != nil || !doc.cut || len(doc.text) > 1100 || len(doc.text) < 900 {
		t.Errorf("cut %v with %d bytes, %v; want about 1000", doc.cut, len(doc.text), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := render(ctx, "<p>x", mustURL(t, "http://h/"), false, 1000); err != context.Canceled {
		t.Errorf("render after cancel = %v, want the cause", err)
	}
}

// fragments are what TestMarkupOfAnyShape makes HTML of.
var fragments = strings.Fields(`<p> </p> <div> </div> <main> </main> <div!role=main> <nav> </nav> <p!hidden> <div!hidden> <h2> </h2> <pre> </pre> <code> </code>
	<ul> <ol> </ul> </ol> <li> </li> <dl> <dt> <dd> </dl> <blockquote> </blockquote> <table> <tr> <td> <th> </td> </tr> </table> <caption> <b> </b> <i> </i> <s> </s>
	<a!href=/x> <a!href=#y> </a> <br> <hr> <img!src=i!alt=w> <sup> <q> </q> <title> </title> <article> </article> <footer> </footer> <svg/> <svg> </svg> <script> </script>
	a b1 * _ | [x](y) # - 1. €`)

// Elements in any order, opened and closed or not, become text, and unless some of them are
// left out, it has all words in their order.
func TestMarkupOfAnyShape(t *testing.T) {
	leftOut := regexp.MustCompile(`main|nav|hidden|svg|script|title|footer`)
	numbered := regexp.MustCompile(`w\d+z`)
	random := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		var b strings.Builder
		var want []string
		for n := range random.IntN(25) {
			b.WriteString(strings.ReplaceAll(fragments[random.IntN(len(fragments))], "!", " "))
			if space := random.IntN(3); space > 0 {
				want = append(want, fmt.Sprintf("w%dz", n))
				b.WriteString(strings.Repeat(" ", space-1) + want[len(want)-1])
			}
		}
		source := b.String()
		for _, plain := range []bool{false, true} {
			doc := rendered(t, source, plain)
			if !utf8.ValidString(doc.text) {
				t.Errorf("%q became %q", source, doc.text)
			}
			if got := numbered.FindAllString(doc.text, -1); !leftOut.MatchString(source) && !slices.Equal(got, want) {
				t.Fatalf("%q became %q, with the words %q, want %q", source, doc.text, got, want)
			}
		}
	}
}

// FuzzRender: any bytes become valid UTF-8 of a bounded length, and what is text without
// marks keeps its words.
func FuzzRender(f *testing.F) {
	for _, source := range hostileMarkup {
		f.Add(source(200), true)
	}
	f.Add("<ul><li>a<table><tr><td>b<pre>c</ul><td>d</table>e", false)
	f.Add("<p>a <b>b<i>c</b>d</i> <a href=http://h/?a=)>e</a> _f_", false)
	f.Add("\xff<b>\xc3", false)
	f.Add("<title>"+strings.Repeat("€", 1000), false)
	f.Fuzz(func(t *testing.T, source string, plain bool) {
		source = strings.ToValidUTF8(source, "\ufffd") // as decode returns it
		doc, err := render(context.Background(), source, mustURL(t, "http://h/x"), plain, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(doc.text) || !utf8.ValidString(doc.title) {
			t.Errorf("%q became %q, %q", source, doc.text, doc.title)
		}
		if most := 200*len(source) + 100; len(doc.text) > most {
			t.Errorf("%d bytes became %d", len(source), len(doc.text))
		}
		if plain && !strings.ContainsAny(source, "<&") {
			if diff := cmp.Diff(words(source), words(doc.text)); diff != "" {
				t.Errorf("%q lost or gained words (-want +got):\n%s", source, diff)
			}
		}
	})
}

// words are what is between white space, as HTML has it.
func words(s string) []string {
	s = strings.NewReplacer("\u00a0", " ", "\u00ad", "", "\u200b", "", "\x00", "").Replace(s)
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\r\f", r) })
}
