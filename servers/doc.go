// Package servers finds Patchbay's built-in servers by name, for programs such as
// "patchbay serve NAME". Each server has a package of its own below this one, for
// use from Go without flags.
package servers
