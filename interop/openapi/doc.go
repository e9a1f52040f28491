// Package openapi tests the servers that package openapi makes of public documents against kin-openapi, which others
// wrote: it reads the same documents, finds the operation of each request, and decodes what was sent. It has tests alone.
// The documents are in packages of npm: "npm ci" in interop/npm/openapi installs them, and with --omit=optional only
// the small ones.
package openapi
