package gateway

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// The names that callers see, of tools and prompts:
//
//   - They match [A-Za-z0-9_-]{1,64}, which is what model providers and hosts take.
//   - A name depends on that of the server, as the configuration has it, and on that
//     of the feature, and on nothing else: not on the other servers, and not on any order.
//   - Two features never have one name (but for a collision of 40-bit hashes within
//     one server), and the server of a name is known without asking any server.
//
// So a name is a prefix made of the server's name, and then that of the feature:
//
//	db       + query      db_query                          the simple case
//	my_db    + query      my_db__query                      or it could be my's db_query
//	my db    + query      my-db--wriuzbi2_query             or it could be my-db's
//	db       + files.read db_files-read--jzbphfxz           or it could be files-read
//
// Where a part cannot stand as it is, it ends in "--" and a hash; what would look like
// that by itself is hashed too.

const (
	maxName   = 64
	maxServer = 40 // of a server's name that stands as it is
	maxHead   = 24 // of a server's name before its hash
	hashLen   = 8
	hashSize  = len("--") + hashLen
)

// Name is the name that callers of a gateway use for a tool or prompt of a server. It
// depends on nothing but its arguments.
func Name(server, feature string) string { return nameOf(prefixOf(server), server, feature) }

func nameOf(prefix, server, feature string) string {
	if joins(prefix, feature) {
		return prefix + feature
	}
	return prefix + hashed(feature, maxName-len(prefix)-hashSize, "feature", server, feature)
}

// joins tells whether the name of a feature can be used behind a prefix as it is.
func joins(prefix, feature string) bool {
	return stands(feature, maxName-len(prefix)) && !strings.Contains(feature, "__")
}

// prefixOf is what the names of a server's features start with. No prefix is the
// beginning of a name that belongs to another.
func prefixOf(server string) string {
	switch {
	case !stands(server, maxServer) || strings.Contains(server, "__") || strings.Trim(server, "_") != server:
		return strings.ReplaceAll(hashed(server, maxHead, "server", server), "_", "-") + "_"
	case strings.Contains(server, "_"):
		return server + "__"
	}
	return server + "_"
}

// stands tells whether a name can be used as it is.
func stands(name string, most int) bool {
	return name != "" && len(name) <= most && strings.IndexFunc(name, unfit) < 0 && !isHashed(name)
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// isHashed tells whether a name ends as one that hashed has made.
func isHashed(name string) bool {
	i := len(name) - hashSize
	return i >= 0 && name[i:i+2] == "--" && strings.Trim(name[i+2:], alphabet) == ""
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567" // RFC 4648, in lower case

// hashed makes a name of what people recognise of one, at most so many bytes, and of a hash
// of all that tells it from others.
func hashed(name string, most int, all ...string) string {
	head := strings.Map(func(r rune) rune {
		if unfit(r) {
			return '-'
		}
		return r
	}, name)
	for strings.Contains(head, "__") { // it ends the prefix of a server
		head = strings.ReplaceAll(head, "__", "_")
	}
	head = strings.Trim(head, "-_")
	head = strings.TrimRight(head[:min(len(head), most)], "-_")
	h := sha256.New()
	for _, s := range all {
		fmt.Fprintf(h, "%d %s ", len(s), s)
	}
	return head + "--" + base32.NewEncoding(alphabet).EncodeToString(h.Sum(nil)[:5])
}
