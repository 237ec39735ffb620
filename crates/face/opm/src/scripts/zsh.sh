#compdef opm
# Completion of opm for zsh. The program itself knows what fits; this asks it.

_opm() {
    local directive candidate
    local -a answer described
    answer=("${(@f)$("${words[1]}" {request} "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    (( $#answer )) || return 1
    directive="${answer[-1]#:}"
    for candidate in "${(@)answer[1,-2]}"; do
        described+=("${${candidate//:/\\:}/$'\t'/:}")
    done
    if (( $#described )); then
        _describe -V 'opm' described
    elif (( (directive & 4) == 0 )); then
        _files
    fi
}

if [[ "${funcstack[1]}" == _opm ]]; then
    _opm "$@"
else
    compdef _opm opm
fi
