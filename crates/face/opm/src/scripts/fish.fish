# Completion of opm for fish. The program itself knows what fits; this asks it.

function __opm_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l answer ($words[1] {request} $words[2..-1] "$typed" 2>/dev/null)
    or return
    set -l directive (string replace ':' '' -- $answer[-1])
    if test (count $answer) -gt 1
        printf '%s\n' $answer[1..-2]
    else if test "$directive" != 4
        __fish_complete_path "$typed"
    end
end

complete -c opm -e
complete -c opm -f -a '(__opm_complete)'
