package pdftext_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"fmt"
	"strings"
)

// pdf writes a file of objects, numbered from 1; the first one is the catalogue.
func pdf(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, at)
	return b.Bytes()
}

// packed writes the same with a cross-reference stream, and all objects that are not streams in an object stream.
func packed(objects ...string) []byte {
	var b, head, body, table bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	n := len(objects) + 1 // of the object stream
	rows := make([][3]int, n+2)
	in := 0
	for i, o := range objects {
		if strings.Contains(o, "stream") {
			rows[i+1] = [3]int{1, b.Len(), 0}
			fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
			continue
		}
		rows[i+1] = [3]int{2, n, in}
		in++
		fmt.Fprintf(&head, "%d %d ", i+1, body.Len())
		body.WriteString(o + "\n")
	}
	rows[n] = [3]int{1, b.Len(), 0}
	fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", n, flate(fmt.Sprintf("/Type /ObjStm /N %d /First %d", in, head.Len()), head.String()+body.String()))
	rows[n+1] = [3]int{1, b.Len(), 0}
	before := make([]byte, 5)
	for _, r := range rows {
		row := []byte{byte(r[0]), byte(r[1] >> 16), byte(r[1] >> 8), byte(r[1]), byte(r[2])}
		table.WriteByte(2) // the predictor that takes the row above
		for i := range row {
			table.WriteByte(row[i] - before[i])
		}
		before = row
	}
	at := b.Len()
	fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", n+1,
		flate(fmt.Sprintf("/Type /XRef /W [1 3 1] /Size %d /Root 1 0 R /DecodeParms <</Predictor 12 /Columns 5>>", n+2), table.String()), at)
	return b.Bytes()
}

func stream(about, data string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", about, len(data), data)
}

func flate(about, data string) string {
	return stream(about+" /Filter /FlateDecode", deflated(data))
}

func deflated(data string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(data))
	w.Close()
	return b.String()
}

func ascii85Of(data string) string {
	out := make([]byte, ascii85.MaxEncodedLen(len(data)))
	return string(out[:ascii85.Encode(out, []byte(data))]) + "~>"
}

// pages returns the objects of a file with pages of such contents, and fonts F1 (Helvetica) and F2 (object 4).
func pages(font string, contents ...string) []string {
	all := []string{
		"<</Type /Catalog /Pages 2 0 R>>", "",
		"<</Font <</F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>> /F2 4 0 R>> /XObject <</X 5 0 R>>>>",
		font, "null",
	}
	kids := ""
	for _, c := range contents {
		n := len(all) + 1
		kids += fmt.Sprintf("%d 0 R ", n)
		all = append(all, fmt.Sprintf("<</Type /Page /Parent 2 0 R /Contents %d 0 R>>", n+1), c)
	}
	all[1] = fmt.Sprintf("<</Type /Pages /Kids [%s] /Count %d /Resources 3 0 R>>", kids, len(contents))
	return all
}
