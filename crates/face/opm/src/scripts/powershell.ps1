# Completion of opm for PowerShell. The program itself knows what fits; this asks it.

Register-ArgumentCompleter -Native -CommandName 'opm' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        ForEach-Object { $_.Extent.Text })
    $program = $words[0]
    $before = @($words | Select-Object -Skip 1)
    if ($wordToComplete -ne '' -and $before.Count -gt 0) {
        $before = @($before | Select-Object -SkipLast 1)
    }
    $typed = if ($wordToComplete -eq '') { '""' } else { $wordToComplete }
    $answer = @(& $program {request} @before $typed 2>$null)
    if ($answer.Count -lt 2) { return }
    $answer[0..($answer.Count - 2)] | ForEach-Object {
        $name, $about = $_ -split "`t", 2
        if (-not $about) { $about = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
