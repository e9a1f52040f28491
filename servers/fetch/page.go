package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// maxImage bounds the bytes of a picture.
const maxImage = 1 << 20

// page is the content of a URL, ready to be returned in parts.
type page struct {
	url       string // after redirects
	asked     string // before them
	status    int
	mediaType string // as the server declares it, or detected
	title     string
	text      string
	form      string // a description of the text: "Markdown made from HTML", "text"
	picture   []byte // in place of text
	cut       string // the reason why the text is incomplete, or empty
	loaded    time.Time
}

// kind is the treatment of a body.
type kind int

const (
	opaque kind = iota // not usable by a model
	plainText
	markup
	picture
)

// load fetches a page.
func (s *server) load(ctx context.Context, raw string, as format) (*page, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", text.Short(raw))
	}
	if s.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.options.Timeout,
			fmt.Errorf("%q took longer than the limit of %v; its server is slow, or the page does not end", shownURL(u, 200), s.options.Timeout))
		defer cancel()
	}
	res, err := s.web.open(ctx, u, as.accept())
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	p := &page{url: shownURL(res.Request.URL, 2000), asked: shownURL(u, 2000), status: res.StatusCode, loaded: time.Now()}
	body := bufio.NewReader(newMeter(ctx, res.Body, res.ContentLength))
	head, err := body.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, p.brokeOff(ctx, err)
	}
	k, mediaType := kindOf(res.Header.Get("Content-Type"), head)
	p.mediaType = mediaType
	limit := s.options.MaxBytes
	switch k {
	case opaque:
		return nil, fmt.Errorf("%s has %s content (%s), which is not text; this tool returns text, HTML, JSON, XML, and pictures (PNG, JPEG, GIF, WebP) up to %s",
			p.origin(), text.Clip(mediaType, 100), bytesText(res.ContentLength), bytesText(maxImage))
	case picture:
		limit = min(limit, maxImage)
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, p.brokeOff(ctx, err)
	}
	if more := int64(len(data)) > limit; more && k == picture {
		return nil, fmt.Errorf("%s has a picture, %s, of more than %s, which is too large to return", p.origin(), mediaType, bytesText(limit))
	} else if more {
		data = data[:limit]
		p.cut = fmt.Sprintf("only its first %s were read", bytesText(limit))
	}
	if k == picture {
		p.picture = data
		return p, nil
	}
	decoded := decode(data, res.Header.Get("Content-Type"), k, p.cut != "")
	if strings.Contains(decoded, "\x00") {
		return nil, fmt.Errorf("%s declares its content as %s, but it has zero bytes, which only binary content has", p.origin(), text.Clip(mediaType, 100))
	}
	p.text, p.form = decoded, "text"
	if k == markup && as != asSource {
		doc, err := s.render(ctx, decoded, res.Request.URL, as == asText)
		if err != nil {
			return nil, err
		}
		p.text, p.title, p.form = doc.text, text.Short(doc.title), as.made()
		if doc.cut && p.cut == "" {
			p.cut = fmt.Sprintf("only its first %s were made into text", bytesText(s.options.MaxBytes))
		}
	}
	if most := int(s.options.MaxBytes); len(p.text) > most {
		p.text = strings.ToValidUTF8(p.text[:most], "")
		if p.cut == "" {
			p.cut = fmt.Sprintf("only %s of text were made of it", bytesText(s.options.MaxBytes))
		}
	}
	return p, nil
}

// render waits for a slot and converts HTML. Hostile HTML takes twenty times its size of memory,
// for less than a second.
func (s *server) render(ctx context.Context, source string, base *url.URL, plain bool) (document, error) {
	select {
	case s.rendering <- struct{}{}:
		defer func() { <-s.rendering }()
	case <-ctx.Done():
		return document{}, context.Cause(ctx)
	}
	return render(ctx, source, base, plain, int(s.options.MaxBytes))
}

// origin names a page's address, for the beginning of a sentence.
func (p *page) origin() string {
	where := p.url
	if p.asked != p.url {
		where += " (redirected from " + p.asked + ")"
	}
	return where
}

// brokeOff returns the error for a body that ended early or timed out.
func (p *page) brokeOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the answer of %s broke off: %w", p.origin(), explain(ctx, err))
}

// kindOf determines the kind and type of a body, by its declared type and first bytes.
func kindOf(contentType string, head []byte) (kind, string) {
	looks, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	declared, _, _ := mime.ParseMediaType(contentType)
	if declared == "" {
		declared = looks
	}
	switch {
	case declared == "text/html", declared == "application/xhtml+xml":
		return markup, declared
	case strings.HasPrefix(declared, "text/"), declared == "application/json", declared == "application/xml",
		strings.HasSuffix(declared, "+json"), strings.HasSuffix(declared, "+xml"):
		return plainText, declared
	}
	switch looks {
	case "image/png", "image/jpeg", "image/gif", "image/webp": // what clients show
		return picture, looks
	}
	// An unspecific type, such as application/octet-stream, or one of the many text types.
	if strings.HasPrefix(looks, "text/") && !strings.HasPrefix(declared, "image/") && !strings.HasPrefix(declared, "audio/") && !strings.HasPrefix(declared, "video/") {
		return plainText, declared
	}
	return opaque, declared
}

// decode converts a body to valid UTF-8.
//
// A byte order mark decides, then the header, then, in HTML, a meta element. If they say
// windows-1252, or nothing, a body that is valid UTF-8 is read as such: other text is almost never
// valid UTF-8 by chance, and the wrong header is common.
func decode(body []byte, contentType string, k kind, cut bool) string {
	head := body[:min(len(body), 1024)]
	if k != markup {
		head = body[:min(len(body), 3)] // only a byte order mark counts, not a meta element
	}
	encoding, name, _ := charset.DetermineEncoding(head, contentType)
	whole := body
	for n := 1; cut && n < utf8.UTFMax && n <= len(body); n++ { // a rune that the limit has cut
		if b := body[len(body)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(body[len(body)-n:]) {
				whole = body[:len(body)-n]
			}
			break
		}
	}
	if name == "utf-8" || name == "windows-1252" && utf8.Valid(whole) {
		return strings.ToValidUTF8(string(bytes.TrimPrefix(whole, []byte("\ufeff"))), "\ufffd")
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "\ufffd"), "\ufeff")
}
