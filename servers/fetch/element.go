package fetch

import "strings"

// noise reports whether an element is not part of a page's content.
func (r *renderer) noise(name string, attr map[string]string) bool {
	switch name {
	case "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "video", "audio", "map",
		"select", "button", "textarea", "input", "datalist", "dialog", "nav", "noembed", "noframes", "annotation", "annotation-xml":
		return true
	case "html", "body", "main":
		return false
	case "footer": // of the page, not of an article
		if r.sections == 0 {
			return true
		}
	}
	switch attr["role"] {
	case "navigation", "search", "menu", "menubar":
		return true
	}
	if _, hidden := attr["hidden"]; hidden || attr["aria-hidden"] == "true" {
		return true
	}
	if style := attr["style"]; style != "" {
		style = strings.ToLower(strings.Join(strings.Fields(style), ""))
		return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
	}
	return false
}

// language is the name in a class such as "language-go", or "" if there is none.
func language(class string) string {
	for _, c := range strings.Fields(class) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
			name, ok := strings.CutPrefix(c, prefix)
			if ok && len(name) <= 20 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-") == "" {
				return name
			}
		}
	}
	return ""
}

// isBlock reports whether an element begins on a line of its own.
func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset",
		"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "html", "legend", "li", "main",
		"menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul":
		return true
	}
	return false
}

// endIsOptional reports whether the end tag of an element may be omitted in HTML.
func endIsOptional(name string) bool {
	switch name {
	case "p", "li", "dt", "dd", "tr", "td", "th":
		return true
	}
	return false
}

// isVoid reports whether an element has neither content nor end tag.
func isVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr":
		return true
	}
	return false
}
