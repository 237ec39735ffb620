# Completion of opm for bash. The program itself knows what fits; this asks it.

__opm_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" word answer directive
    local -a words candidates
    read -ra words <<<"$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    answer=$("${words[0]}" {request} "${words[@]:1}" 2>/dev/null) || return
    mapfile -t candidates <<<"$answer"
    directive="${candidates[-1]#:}"
    unset 'candidates[-1]'
    COMPREPLY=()
    # Names alone are inserted; when bash only lists them, what they are for is shown as well.
    if [[ ${#candidates[@]} -gt 1 && "$COMP_TYPE" == 63 ]]; then
        for word in "${candidates[@]}"; do
            if [[ "$word" == *$'\t'* ]]; then
                COMPREPLY+=("${word%%$'\t'*}  (${word#*$'\t'})")
            else
                COMPREPLY+=("$word")
            fi
        done
    else
        for word in "${candidates[@]}"; do
            COMPREPLY+=("${word%%$'\t'*}")
        done
    fi
    if (( ${#COMPREPLY[@]} == 0 && (directive & 4) == 0 )); then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

complete -F __opm_complete opm
