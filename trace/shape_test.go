package trace_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/trace"
)

// Invented, and assembled here so that secret scanners do not report them.
const (
	letters36 = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	letters24 = "aB3dE5fG7hJ9kL1mN3pQ5rS7"
)

var shapedSecrets = map[string]string{
	"GitHub, classic":      "gh" + "p_" + letters36,
	"GitHub, app":          "gh" + "s_" + letters36,
	"GitHub, fine-grained": "github" + "_pat_11AB" + letters24 + "_" + letters36 + letters24,
	"GitLab":               "gl" + "pat-aB3dE5fG7hJ9kL1mN3pQ",
	"GitLab, routable":     "gl" + "pat-aB3dE5fG7hJ9kL1mN3pQ5rS7tUm86MQp1OjIH.01.0w1abcdef",
	"GitLab, no digits":    "gl" + "pat-aBcdEfFgGhHjIkJlKmLn",
	"AWS":                  "AK" + "IAQ3EGRZ7PLM2XWT5V",
	"AWS, session":         "AS" + "IAQ3EGRZ7PLM2XWT5V",
	"Slack, bot":           "xo" + "xb-123456789012-1234567890123-" + letters24,
	"Slack, user":          "xo" + "xp-123456789012-123456789012-" + letters24,
	"Slack, app":           "xa" + "pp-1-A012345BCDE-1234567890123-aabbccdd0011",
	"Stripe":               "sk" + "_live_" + letters24,
	"Stripe, restricted":   "rk" + "_test_" + letters24,
	"Stripe, webhook":      "wh" + "sec_" + letters36,
	"Google, key":          "AI" + "zaSy" + letters24 + "_-90aBcdX",
	"Google, client":       "GO" + "CSPX-" + letters24 + "_-9a",
	"Google, access":       "ya" + "29.a0" + letters36 + "-_x",
	"OpenAI":               "sk" + "-" + letters24 + letters24,
	"OpenAI, project":      "sk" + "-proj-" + letters24 + "_-" + letters36,
	"Anthropic":            "sk" + "-ant-api03-" + letters36 + "-_" + letters24 + "AA",
	"OpenRouter":           "sk" + "-or-v1-" + strings.Repeat("0a1b2c3d", 8),
	"Hugging Face":         "hf" + "_" + letters36[:34],
	"npm":                  "np" + "m_" + letters36,
	"PyPI":                 "py" + "pi-AgEIcHlwaS5vcmc" + letters36 + letters24,
	"JWT":                  jwtOf(`{"alg":"RS256","typ":"JWT"}`, `{"sub":"ada","exp":1}`, letters36+letters36),
	"JWE":                  jwtOf(`{"alg":"dir","enc":"A256GCM"}`, "", "") + "." + letters24 + "." + letters36 + "." + letters24,
	"PEM":                  "-----BEGIN RSA " + "PRIVATE KEY-----\n" + letters36 + "\n" + letters36 + "==\n-----END RSA PRIVATE KEY-----",
	"OpenSSH":              "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + letters36 + "\n-----END OPENSSH PRIVATE KEY-----",
}

func jwtOf(header, payload, signature string) string {
	if payload == "" { // a JWE with its key in the second part
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + letters36
	}
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + signature
}

// Secrets are recognized by their shape (trap 23), wherever they are in a recording and however
// they are written.
func TestShapedSecrets(t *testing.T) {
	red := trace.NewRedactor(nil)
	lines := trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})
	for name, secret := range shapedSecrets {
		t.Run(name, func(t *testing.T) {
			core := secret[len(secret)/3 : len(secret)*2/3]
			if name == "PEM" || name == "OpenSSH" {
				core = letters36
			}
			for _, text := range []string{
				secret, "the key is " + secret + ".", "a=" + secret + "&b=1", "(" + secret + ")", "'" + secret + "',", "x/" + secret + "/y",
				"https://example.com/?q=" + url.QueryEscape(" "+secret), "two: " + secret + " " + secret,
			} {
				if got := lines.Text(text); strings.Contains(got, core) || !strings.Contains(got, trace.Redacted) {
					t.Errorf("Text(%q) = %q", text, got)
				}
				if strings.HasPrefix(text, "a=") && lines.Text(text) != "a="+trace.Redacted+"&b=1" {
					t.Errorf("Text(%q) = %q: more is gone than the secret", text, lines.Text(text))
				}
				msg, err := json.Marshal(map[string]any{"result": map[string]any{"content": []any{map[string]any{"text": "a\n" + text}, "{\"x\":\"" + strings.ReplaceAll(text, "\n", `\n`) + "\"}"}}})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range []trace.Frame{
					{Dir: trace.In, Msg: msg}, {Dir: trace.In, Raw: []byte(text)}, {Dir: trace.In, Raw: msg[:len(msg)-2]}, {Dir: trace.In, Note: text}, {Args: []string{"x", text}},
					{Dir: trace.In, HTTP: &trace.HTTP{Path: "/x?" + text, Headers: map[string][]string{"X-Any": {text}}}},
				} {
					if got := red.Frame(f).Append(nil); strings.Contains(string(got), core) {
						t.Errorf("a recording has %s", got)
					}
				}
			}
		})
	}
}

// Text that only resembles a secret stays.
func TestOrdinaryTexts(t *testing.T) {
	red := trace.NewRedactor(nil)
	for _, text := range []string{
		"sk-your-openai-key-goes-here-please", "sk-proj-your-project-key-goes-here", "glpat-your-access-token-goes-here", "xoxb-your-bot-token-goes-here",
		"task-proj-2024-migration-of-the-old-database", "disk-0123456789abcdef0123456789abcdef", "risk-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z",
		"ghp_short", "ghp_" + strings.Repeat("x", 36), "npm_config_registry=https://registry.npmjs.org/", "npm_lifecycle_event", "npm_package_dependencies_left_pad_version_major",
		"hf_transfer", "AKIA", "AKIAIOSFODNN7EXAMPLEWITHMORE", "AIzaShort", "ASIA PACIFIC", "eyJ is how they begin", "eyJhbGciOiJIUzI1NiJ9", "eyJabc.def.ghi",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "d41d8cd98f00b204e9800998ecf8427e", "550e8400-e29b-41d4-a716-446655440000",
		"commit 1f0e3dad99908345f7439f8ffabdffc4b2e5d0a1", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"--------- BEGIN ---------", "a = b - c ----- d", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
		"https://example.com/docs/sk-learn/user-guide/getting-started-with-pipelines", "rk_test_", "pypi-server", "whsec_", "1//02", "ya29 is a road", "xapp-", "github_pat_", "basic facts",
	} {
		if got := red.Text(text); got != text {
			t.Errorf("Text(%q) = %q", text, got)
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := red.Frame(trace.Frame{Dir: trace.In, Msg: quoted}); string(got.Msg) != string(quoted) {
			t.Errorf("the message %s became %s", quoted, got.Msg)
		}
	}
}

// Random data in base64 is rarely taken for a secret.
func TestBinaryIsNoSecret(t *testing.T) {
	var state uint64 = 1
	data := make([]byte, 3<<20)
	for i := range data {
		state = state*6364136223846793005 + 1442695040888963407
		data[i] = byte(state >> 56)
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		text := enc.EncodeToString(data)
		if got := trace.NewRedactor(nil).Text(text); got != text {
			t.Error("random data has a secret")
		}
	}
}

// A private key that a child writes to standard error line by line is replaced, and later lines
// are not; a key on one connection does not hide the lines of another.
func TestKeysInLines(t *testing.T) {
	red := trace.NewRedactor(nil)
	line := func(conn, text string) string {
		return string(red.Frame(trace.Frame{Kind: trace.KindStderr, Conn: conn, Raw: []byte(text)}).Raw)
	}
	key := strings.Split(shapedSecrets["PEM"], "\n")
	for i, part := range key {
		if got := line("a", part); got != trace.Redacted {
			t.Errorf("line %d of the key is %q", i, got)
		}
		if got := line("b", "other "+letters24); got != "other "+letters24 {
			t.Errorf("a line of another child is %q", got)
		}
	}
	if got := line("a", letters24); got != letters24 {
		t.Errorf("behind the key: %q", got)
	}
	var l trace.Lines
	if !l.Secret(key[0]) {
		t.Error("the first line of a key passes")
	}
	for n := 0; l.Secret("x"); n++ {
		if n > 1000 {
			t.Fatal("a key without an end has no end")
		}
	}
}

// Redaction does not panic and is idempotent.
func FuzzShapes(f *testing.F) {
	for _, secret := range shapedSecrets {
		f.Add("a " + secret + " b")
	}
	f.Add("eyJ.eyJ..")
	f.Add("-----BEGIN PRIVATE KEY-----")
	red := trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})
	f.Fuzz(func(t *testing.T, text string) {
		once := red.Text(text)
		if twice := red.Text(once); twice != once {
			t.Errorf("Text(%q) = %q, and of that %q", text, once, twice)
		}
	})
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, see https://example.com/a/b?c=d for more. ", 100)
	red := trace.NewRedactor(&trace.RedactorOptions{Names: []string{}})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if red.Text(text) != text {
			b.Fatal("changed")
		}
	}
}
