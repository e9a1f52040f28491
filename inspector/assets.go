package inspector

import (
	"bytes"
	"compress/gzip"
	"embed"
	"net/http"
	"path"
	"strings"
	"sync"
)

// assets is made of ui by go -C internal/tools run ./ui.
//
//go:embed assets
var assets embed.FS

// kinds are the types of files by the ends of their names.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

// packed holds files compressed with gzip, by name.
var packed sync.Map

// asset serves a file whose name has the hash of its content.
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if kind := path.Ext(name); kind != ".js" && kind != ".css" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	serve(w, r, name)
}

// document serves the page.
func document(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !isScreen(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	serve(w, r, "index.html")
}

// serve serves an embedded file.
func serve(w http.ResponseWriter, r *http.Request, name string) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		w.Header().Del("Cache-Control")
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kinds[path.Ext(name)])
	h.Set("Vary", "Accept-Encoding")
	switch takes := r.Header.Get("Accept-Encoding"); {
	case takesBrotli(takes) && brotli(name) != nil:
		h.Set("Content-Encoding", "br")
		text = brotli(name)
	case strings.Contains(takes, "gzip"):
		h.Set("Content-Encoding", "gzip")
		text = pack(name, text)
	}
	_, _ = w.Write(text) // the browser may have gone
}

// takesBrotli reports whether an Accept-Encoding has Brotli, as browsers write it.
func takesBrotli(accepts string) bool {
	for name := range strings.SplitSeq(accepts, ",") {
		if strings.TrimSpace(name) == "br" {
			return true
		}
	}
	return false
}

// brotli returns a file compressed with Brotli, which the bundler does; nil: there is none.
func brotli(name string) []byte {
	text, err := assets.ReadFile("assets/" + name + ".br")
	if err != nil {
		return nil
	}
	return text
}

// pack compresses a file once.
func pack(name string, text []byte) []byte {
	if have, ok := packed.Load(name); ok {
		return have.([]byte)
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = z.Write(text)
	_ = z.Close()
	packed.Store(name, out.Bytes())
	return out.Bytes()
}
