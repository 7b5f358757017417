//! Commands from standard input that is no terminal.

use std::io::BufRead;

use super::CommandError;
use super::interrupt::Interrupts;
use super::shell::{Next, Shell};

/// Runs line after line until `quit`, the end of the input or Ctrl-C, and returns the exit code.
pub async fn run(mut shell: Shell, interrupts: &Interrupts) -> u8 {
    match lines(&mut shell, interrupts).await {
        Ok(Next::End) => shell.code(),
        Ok(Next::More) => shell.finish().await,
        Err(error) => {
            shell.complain(&error);
            error.exit_code()
        }
    }
}

/// As zkCli with its line editor does it, a prompt stands in front of each line under its name; under ours none does.
async fn lines(shell: &mut Shell, interrupts: &Interrupts) -> Result<Next, CommandError> {
    let prompts = shell.manner().zkcli && !shell.manner().quiet;
    shell.welcome(prompts)?;
    loop {
        if prompts {
            let prompt = shell.prompt();
            shell.out().raw(prompt.as_bytes())?;
        }
        shell.out().flush()?;
        let Some(line) = next_line().await? else {
            break;
        };
        if interrupts.during(shell.line(&line)).await == Next::End {
            return Ok(Next::End);
        }
        if interrupts.any() {
            return Ok(Next::More);
        }
    }
    if prompts {
        // The editor gives up at the end of the input, and says so.
        shell.out().line("JLine support is disabled")?;
        shell.out().flush()?;
    }
    Ok(Next::More)
}

/// The next line without its end, read by a thread that may wait.
async fn next_line() -> Result<Option<String>, CommandError> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = Vec::new();
        let count = std::io::stdin().lock().read_until(b'\n', &mut line)?;
        Ok::<_, std::io::Error>((count > 0).then_some(line))
    });
    let line = read
        .await
        .unwrap_or_else(|ended| Err(std::io::Error::other(ended)))
        .map_err(|error| CommandError::failed(format!("Cannot read standard input: {error}")))?;
    Ok(line.map(|line| {
        let text = String::from_utf8_lossy(&line);
        text.trim_end_matches(['\n', '\r']).to_owned()
    }))
}
