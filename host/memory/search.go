package memory

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode"

	"github.com/patchbay-dev/patchbay/host/model"
)

const (
	// maxIndexed bounds the indexed part of a message, in bytes.
	maxIndexed = 64 << 10

	maxQuery = 32 // words
)

// begin and end mark a match. Indexed text does not contain them.
const begin, end = "\x02", "\x03"

var noMarks = strings.NewReplacer(begin, " ", end, " ", "\x00", " ")

// words returns the searchable text of a message: its text, and the names, arguments and results
// of tools.
func words(m *model.Message) string {
	var b strings.Builder
	add := func(s string) {
		if s != "" && b.Len() < maxIndexed {
			b.WriteString(bound(s, maxIndexed-b.Len()))
			b.WriteByte('\n')
		}
	}
	for _, p := range m.Parts {
		add(p.Text)
		if p.Call != nil {
			add(p.Call.Name)
			add(string(p.Call.Arguments))
		}
		if p.Media != nil {
			add(p.Media.Name)
		}
		if p.Result != nil {
			for _, part := range p.Result.Parts {
				add(part.Text)
			}
		}
	}
	return noMarks.Replace(b.String())
}

func index(ctx context.Context, tx *sql.Tx, row int64, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO words (rowid, text) VALUES (?, ?)", row, text)
	return err
}

// Hit is a message or a title that matches a search.
type Hit struct {
	Conversation Conversation
	Entry        int // its place, from 0; -1: it is the title
	Turn         int
	Role         model.Role // empty: it is the title
	At           time.Time

	// Snippet is the text around the first match, in one line.
	Snippet string
	Found   [][2]int // matches in Snippet: offsets in bytes
}

// Search finds the messages and titles that have all words of a text, or words that begin with
// them, best match first. Case and accents are ignored. If limit is 0, it means 20. A text without
// words finds nothing.
func (s *Store) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	q := query(text)
	if q == "" {
		return nil, nil
	}
	// A row of words belongs to an entry or, with a negative number, to a title.
	rows, err := s.db.QueryContext(ctx, "SELECT c."+strings.ReplaceAll(columns, ", ", ", c.")+`,
			coalesce(e.position, -1), coalesce(e.turn, 0), coalesce(e.role, ''), coalesce(e.at, c.created), snippet(words, 0, ?3, ?4, '…', 24)
		FROM words LEFT JOIN entries e ON e.n = words.rowid JOIN conversations c ON c.n = coalesce(e.conversation, -words.rowid)
		WHERE words MATCH ?1 ORDER BY rank, words.rowid DESC LIMIT ?2`, q, cmp.Or(limit, 20), begin, end)
	if err != nil {
		return nil, s.fail("search conversations", err)
	}
	defer rows.Close()
	var hits []Hit
	for rows.Next() {
		var h Hit
		var at int64
		var role, snippet string
		if _, h.Conversation, err = scanConversation(rows.Scan, &h.Entry, &h.Turn, &role, &at, &snippet); err != nil {
			return nil, s.fail("search conversations", err)
		}
		h.Role, h.At = model.Role(role), time.UnixMilli(at).UTC()
		h.Snippet, h.Found = unmark(oneLine(snippet))
		hits = append(hits, h)
	}
	if err := rows.Err(); err != nil {
		return nil, s.fail("search conversations", err)
	}
	return hits, nil
}

// query makes an FTS5 query from text that a person typed. Nothing in the text is an operator.
func query(text string) string {
	var q []string
	for word := range strings.FieldsSeq(noMarks.Replace(strings.ToValidUTF8(text, " "))) {
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			continue // it has no word
		}
		if q = append(q, `"`+strings.ReplaceAll(bound(word, 200), `"`, `""`)+`"*`); len(q) == maxQuery {
			break
		}
	}
	return strings.Join(q, " ")
}

// unmark removes the marks from a snippet and returns their positions.
func unmark(s string) (text string, found [][2]int) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, begin)
		b.WriteString(before)
		if !ok {
			return b.String(), found
		}
		word, after, _ := strings.Cut(rest, end)
		found = append(found, [2]int{b.Len(), b.Len() + len(word)})
		b.WriteString(word)
		s = after
	}
}
