package complete

// Shells returns the shells that have a script.
func Shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// Script returns the script of a shell, with its installation in a comment; empty for an unknown
// shell.
func Script(shell string) string { return scripts[shell] }

// scripts call the hidden verb with the line before the cursor.
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
