// Package skills serves and reads Agent Skills over MCP. It implements the extension
// io.modelcontextprotocol/skills (SEP-2640). A skill is a folder that contains a file SKILL.md, and
// any other files that SKILL.md refers to. SKILL.md consists of YAML front matter and, after it,
// instructions for a model.
//
// A server offers a folder of skills:
//
//	root, err := os.OpenRoot("skills")
//	...
//	_, err = skills.Serve(srv, root.FS())
//
// It then answers skills/list, skills/get and resources/directory/read, and every file
// is a resource, skill://<path of the skill>/<path of the file>.
//
// A client lists the skills, which reads no file, and loads those it needs:
//
//	for skill, err := range skills.List(ctx, session) { ... }
//	active, err := skills.Load(ctx, session, skill)
//	form, err := active.Read(ctx, "references/FORMS.md")
//
// # Guarantees
//
//   - Nothing outside of the folder is served: symbolic links and special files are refused, and
//     only files found by a scan can be read. Files whose names begin with a dot are left out.
//   - Nothing is read before it is requested. A file is returned only if its size and digest
//     match the entry, and a SKILL.md only if its front matter does too; no file of a skill is
//     read before its SKILL.md is verified.
//   - A digest proves that the server is consistent, not that it can be trusted. The text of a
//     skill is input from the server; run nothing in it without asking.
package skills
