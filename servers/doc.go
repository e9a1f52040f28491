// Package servers finds the servers that Patchbay ships by their names, for
// programs such as "patchbay serve NAME". Each has a package of its own below this
// one, to be used from Go without flags.
package servers
