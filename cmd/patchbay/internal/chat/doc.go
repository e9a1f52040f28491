// Package chat is a host.Host at a terminal: a conversation with a model in which the person sees
// every call, approves calls and answers questions.
//
// Finished output goes into the terminal's own scrollback, and only the part that still changes is
// repainted. So a chat can be selected, searched and scrolled like any other output, over SSH and
// in tmux, and its memory does not grow with its length. The viewer, opened by ctrl-O, shows in
// full what the chat shortens. The mouse is left to the terminal.
//
// # Guarantees
//
//   - Only the goroutine that writes to the terminal waits for it: calls go on while it is blocked.
//   - All text from servers and models is made visible before it reaches the terminal.
//   - Keys that a person presses while writing do not answer a question that appears meanwhile; nor
//     do keys answer a question that is not visible.
//   - The terminal is restored at the end, also after a panic of the UI.
package chat
