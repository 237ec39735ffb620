fn main() -> std::process::ExitCode {
    use std::io::Write;
    let a: Vec<String> = std::env::args().skip(2).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut err = std::io::stderr();
    let c = mainstay_cli::opm::run(
        &a,
        &mut mainstay_cli::opm::Io {
            stdout: &mut out,
            stderr: &mut err,
            folder: std::env::current_dir().unwrap_or_default(),
            alpha: true,
            terminal: false,
            clock: mainstay_clock::Clock::system(),
        },
    );
    let _ = out.flush();
    std::process::ExitCode::from(c)
}
