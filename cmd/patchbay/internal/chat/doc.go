// Package chat is a host.Host at a terminal: a talk with a model in which the person sees every
// call, approves and answers.
//
// What is over goes into the terminal's own scrollback, and only what still changes is painted:
// so a talk can be selected, searched and scrolled as any other output, over SSH and in tmux,
// and takes no more memory the longer it gets. A page of its own, which ctrl-O opens, shows in
// full what stands there in short. The mouse is left to the terminal.
//
// # Guarantees
//
//   - Nothing waits for the terminal but the one goroutine that writes to it: calls go on if it
//     stands still.
//   - No text of servers or models reaches the terminal before it was made visible.
//   - Keys that a person presses while they write are no answers to a question that comes up
//     meanwhile, nor are keys to one that cannot be seen.
//   - The terminal is given back as it was, also after a panic of the UI.
package chat
