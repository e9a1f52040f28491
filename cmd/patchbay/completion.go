package main

import (
	"slices"
	"strings"
)

// completionCmd prints a script that makes a shell complete the command line of this
// program.
type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh, fish or powershell."`
}

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (c *completionCmd) Run(a *app) error {
	script, ok := scripts[c.Shell]
	if !ok {
		return usagef("no completion for %q; there are %s", c.Shell, strings.Join(shells, ", ")).hint("patchbay help completion")
	}
	a.out.WriteString(script)
	return nil
}

// scripts call "patchbay __complete" with what stands before the cursor.
var scripts = map[string]string{
	"bash": `# bash completion for patchbay; put this into ~/.bashrc:
#   source <(patchbay completion bash)
_patchbay() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(patchbay __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null </dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null # bash 3 has none
    fi
}
complete -o default -F _patchbay patchbay
`,
	"zsh": `#compdef patchbay
# zsh completion for patchbay; put this into ~/.zshrc, after compinit:
#   source <(patchbay completion zsh)
_patchbay() {
    local value about
    local -a open openabout whole wholeabout
    while IFS=$'\t' read -r value about; do
        if [[ $value == *[=/] ]]; then
            open+=("$value") openabout+=("$value  $about")
        else
            whole+=("$value") wholeabout+=("$value  $about")
        fi
    done < <(patchbay __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)
    if (( ! $#open && ! $#whole )); then
        _files
        return
    fi
    (( $#open )) && compadd -l -S '' -d openabout -a open
    (( $#whole )) && compadd -l -d wholeabout -a whole
}
compdef _patchbay patchbay
`,
	"fish": `# fish completion for patchbay; save it:
#   patchbay completion fish > ~/.config/fish/completions/patchbay.fish
function __patchbay_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    patchbay __complete fish $before[2..-1] "$current" 2>/dev/null </dev/null
end
complete -c patchbay -a '(__patchbay_complete)'
`,
	"powershell": `# PowerShell completion for patchbay; put this into $PROFILE:
#   patchbay completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName patchbay -ScriptBlock {
    param($word, $ast, $cursor)
    $before = @($ast.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.ToString() })
    & patchbay __complete powershell @before "=$word" 2>$null | ForEach-Object {
        $value, $about = $_ -split "` + "`t" + `", 2
        if (-not $about) { $about = $value }
        $text = $value
        if ($text -match '[^\w./:=@%+,-]') { $text = "'" + ($text -replace "'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
    }
}
`,
}

// splitLine takes a command line of bash apart as bash does, without expanding anything.
// The last word is what stands before the cursor, empty after a space. It is not ok if that is
// within quotes, or if a sign ends the command before.
func splitLine(line string) (words []string, ok bool) {
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
			continue
		case '|', '&', ';', '(':
			words = nil // another command begins
			word.Reset()
			begun = false
			continue
		case '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		case '\'', '"':
			end := closing(line[i+1:], c)
			if end < 0 {
				return nil, false
			}
			text := line[i+1 : i+1+end]
			if c == '"' {
				text = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(text)
			}
			word.WriteString(text)
			i += end + 1
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	return append(words, word.String()), true
}

// closing finds the quote that ends a text.
func closing(s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && quote == '"' {
			i++
		} else if s[i] == quote {
			return i
		}
	}
	return -1
}

// forBash is a candidate as bash wants it: what stands behind the last sign that breaks
// words, with everything quoted that the shell would take for its own.
func forBash(candidate, current, breaks string) string {
	from := 0
	for i := range current {
		if strings.IndexByte(breaks, current[i]) >= 0 && strings.IndexByte("=:@", current[i]) >= 0 {
			from = i + 1
		}
	}
	var out strings.Builder
	for _, r := range candidate[from:] {
		if r < 0x80 && !slices.Contains([]byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-"), byte(r)) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
