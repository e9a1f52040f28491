package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// The model of run learns the names and descriptions of skills that the person has agreed to, and reads one
// without asking when it needs it. Without skills it learns nothing of them.
func TestSkills(t *testing.T) {
	alone(t)
	model := scripted(t, modeltest.MustParse(`
turns:
  - when: {user: hello}
    answer: [text: One.]
  - when: {user: hello}
    answer:
      - call: {name: read_resource, arguments: {server: project-skills, uri: "skill://tea/SKILL.md"}}
  - when: {results: {read_resource: "Use green leaves."}}
    answer: [text: Two.]
  - when: {user: a pot for two}
    answer: [text: Three.]
`))
	dir := filepath.Join(".agents", "skills", "tea")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: tea\ndescription: Makes tea.\n---\n\nUse green leaves.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() ran { return typed(t, "", "run", "hello", "-m", "openai/scripted", "-s", "conjugate") }
	got := func(i int) string { return string(model.Requests()[i].Body) }
	run().expect(t, exitOK, "One.\n", ".agents/skills is not trusted yet, so the model does not get it; patchbay config trust ")
	if body := got(0); strings.Contains(body, "kill") {
		t.Errorf("without skills the model gets %s", body)
	}
	typed(t, "", "config", "trust", ".agents/skills").expect(t, exitOK, "skill tea: Makes tea. (1 file, 61 bytes)\ntrusted: "+filepath.Join(".agents", "skills")+"\n")
	out := run()
	out.expect(t, exitOK, "Two.\n")
	if body := got(1); !strings.Contains(body, "skill://tea/SKILL.md: Makes tea.") || strings.Contains(body, "green leaves") {
		t.Errorf("with skills the model gets %s", body)
	}
	chat := typed(t, "/project-skills:tea task=\"a pot for two\"\n", "chat", "-m", "openai/scripted", "-s", "conjugate")
	if body := got(3); !strings.Contains(chat.stdout, "Three.") || !strings.Contains(body, "Use green leaves.") {
		t.Errorf("the prompt of a skill: %+v; the model gets %s", chat, body)
	}
	if strings.Contains(out.stderr, "project-skills: ready") || strings.Contains(out.stderr, "may be") {
		t.Errorf("stderr: %s", out.stderr)
	}
}
