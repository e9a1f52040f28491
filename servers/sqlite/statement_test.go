package sqlite

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/patchbay-dev/patchbay/internal/text"
)

var statementTests = []struct {
	name, text string
	want       string // empty: refused
}{
	{"plain", "SELECT 1", "SELECT 1"},
	{"semicolons around", " ; SELECT 1 ;; ", "SELECT 1"},
	{"comments around", "-- one; two\nSELECT 1 /* ; */ ; -- ;", "SELECT 1"},
	{"semicolon in a string", "SELECT ';''; DROP TABLE t'", "SELECT ';''; DROP TABLE t'"},
	{"semicolon in names", "SELECT \";\", `;`, [;]", "SELECT \";\", `;`, [;]"},
	{"trigger", "CREATE TRIGGER a AFTER INSERT ON t BEGIN UPDATE t SET x = 1; SELECT CASE WHEN 1 THEN 2 END; END;",
		"CREATE TRIGGER a AFTER INSERT ON t BEGIN UPDATE t SET x = 1; SELECT CASE WHEN 1 THEN 2 END; END"},
	{"temporary trigger", "create temp trigger a after insert on t begin select 1; end", "create temp trigger a after insert on t begin select 1; end"},
	{"slash and star at the end", "SELECT 1 /*", "SELECT 1 /*"},

	{"nothing", "", ""},
	{"comment alone", "-- SELECT 1", ""},
	{"semicolons alone", ";;", ""},
	{"two", "SELECT 1; SELECT 2", ""},
	{"two after an empty one", "; SELECT 1; DROP TABLE t", ""},
	{"after a trigger", "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END; DROP TABLE t", ""},
	{"after a trigger, byte order mark", "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; \ufeffEND; DROP TABLE t", ""},
	{"after a trigger, vertical tab", "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; \vEND; DROP TABLE t", ""},
	{"quote in a variable", "SELECT $a('); DROP TABLE t; --')", ""},
	{"comment in a variable", "SELECT $a(/*); DROP TABLE t; --*/)", ""},
	{"quote in a variable with ::", "SELECT $a::b('); DROP TABLE t; --')", ""},
	{"quote in an @ variable", "SELECT @a('); DROP TABLE t; --')", ""},
	{"NUL", "SELECT 1\x00; DROP TABLE t", ""},
	{"too long", "SELECT '" + strings.Repeat("x", maxQuery) + "'", ""},
}

func TestStatement(t *testing.T) {
	for _, tt := range statementTests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := statement(tt.text)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("statement(%q) = %q, %v; want %q", text.Short(tt.text), got, err, tt.want)
			}
		})
	}
}

// FuzzStatement asks the engine: what is let pass as one statement must be one to
// the engine too, if it is a statement at all.
func FuzzStatement(f *testing.F) {
	for _, tt := range statementTests {
		if len(tt.text) < 1000 {
			f.Add(tt.text)
		}
	}
	f.Add("SELECT 1e5$x(';'), 1.5, x'00', .5, 1_000, :a, ?1, #1")
	f.Add("EXPLAIN QUERY PLAN CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; ;END; SELECT 1")
	e := newEngine(f)
	f.Fuzz(func(t *testing.T, text string) {
		one, err := statement(text)
		if err != nil {
			return
		}
		if tail, ok := e.prepare(one); ok && strings.Trim(tail, " \t\n\f\r;") != "" {
			t.Fatalf("statement(%q) = %q, but to SQLite the tail %q is another one", text, one, tail)
		}
	})
}

// engine prepares statements with SQLite itself, without the driver.
type engine struct {
	tls  *libc.TLS
	db   uintptr
	stmt uintptr
	tail uintptr
	pins runtime.Pinner // keeps the fields in place while SQLite writes to them
}

// out is the address of a field, for SQLite to write to.
func (e *engine) out(field *uintptr) uintptr {
	e.pins.Pin(field)
	return uintptr(unsafe.Pointer(field))
}

func newEngine(t testing.TB) *engine {
	e := &engine{tls: libc.NewTLS()}
	name, err := libc.CString(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer libc.Xfree(e.tls, name)
	if rc := lib.Xsqlite3_open(e.tls, name, e.out(&e.db)); rc != lib.SQLITE_OK {
		t.Fatalf("sqlite3_open = %d", rc)
	}
	t.Cleanup(func() {
		lib.Xsqlite3_close(e.tls, e.db)
		e.tls.Close()
		e.pins.Unpin()
	})
	sql, _ := libc.CString("CREATE TABLE t(x)")
	defer libc.Xfree(e.tls, sql)
	if rc := lib.Xsqlite3_exec(e.tls, e.db, sql, 0, 0, 0); rc != lib.SQLITE_OK {
		t.Fatalf("sqlite3_exec = %d", rc)
	}
	return e
}

// prepare returns what SQLite leaves of a text behind its first statement, and
// whether that statement is valid.
func (e *engine) prepare(text string) (tail string, ok bool) {
	sql, err := libc.CString(text)
	if err != nil {
		return "", false
	}
	defer libc.Xfree(e.tls, sql)
	if rc := lib.Xsqlite3_prepare_v2(e.tls, e.db, sql, -1, e.out(&e.stmt), e.out(&e.tail)); rc != lib.SQLITE_OK {
		return "", false
	}
	lib.Xsqlite3_finalize(e.tls, e.stmt)
	return libc.GoString(e.tail), true
}
