package gateway

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// The names that callers see, of tools and prompts:
//
//   - They match [A-Za-z0-9_-]{1,64}, which model providers and hosts accept.
//   - A name depends only on the configured name of the server and the name of the feature, not on
//     other servers or on any order.
//   - Two features never have the same name, except for a collision of 40-bit hashes within one
//     server, and the name alone tells which server it belongs to.
//
// A name consists of a prefix made from the server's name, followed by the name of the feature:
//
//	db       + query      db_query                          the simple case
//	my_db    + query      my_db__query                      or it could be my's db_query
//	my db    + query      my-db--wriuzbi2_query             or it could be my-db's
//	db       + files.read db_files-read--jzbphfxz           or it could be files-read
//
// A part that cannot be used as it is ends in "--" and a hash. A part that already looks like that
// is hashed too.

const (
	maxName   = 64
	maxServer = 40 // length of a server's name that is used as it is
	maxHead   = 24 // length of a server's name before its hash
	hashLen   = 8
	hashSize  = len("--") + hashLen
)

// Name returns the name that callers of a gateway use for a tool or prompt of a server. It depends
// only on its arguments.
func Name(server, feature string) string { return nameOf(prefixOf(server), server, feature) }

func nameOf(prefix, server, feature string) string {
	if joins(prefix, feature) {
		return prefix + feature
	}
	return prefix + hashed(feature, maxName-len(prefix)-hashSize, "feature", server, feature)
}

// joins reports whether the name of a feature can follow a prefix as it is.
func joins(prefix, feature string) bool {
	return stands(feature, maxName-len(prefix)) && !strings.Contains(feature, "__")
}

// prefixOf returns the prefix of the names of a server's features. No prefix begins a name of
// another server.
func prefixOf(server string) string {
	switch {
	case !stands(server, maxServer) || strings.Contains(server, "__") || strings.Trim(server, "_") != server:
		return strings.ReplaceAll(hashed(server, maxHead, "server", server), "_", "-") + "_"
	case strings.Contains(server, "_"):
		return server + "__"
	}
	return server + "_"
}

// stands reports whether a name can be used as it is.
func stands(name string, most int) bool {
	return name != "" && len(name) <= most && strings.IndexFunc(name, unfit) < 0 && !isHashed(name)
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// isHashed reports whether a name ends like one that hashed has made.
func isHashed(name string) bool {
	i := len(name) - hashSize
	return i >= 0 && name[i:i+2] == "--" && strings.Trim(name[i+2:], alphabet) == ""
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567" // RFC 4648, in lower case

// hashed returns the readable part of name, at most that many bytes, followed by a hash of
// everything that distinguishes it from others.
func hashed(name string, most int, all ...string) string {
	head := strings.Map(func(r rune) rune {
		if unfit(r) {
			return '-'
		}
		return r
	}, name)
	for strings.Contains(head, "__") { // it would end the prefix of a server
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
