//! What the programs share: steps that are printed as integration/lib/clients.py wants them, and waiting.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::io::BufRead;
use std::time::{Duration, Instant};

/// How long anything may take that has to come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Why a step failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a step comes to.
pub type Outcome = Result<(), Failure>;

/// Prints what came of a step.
pub fn report(name: &str, began: Instant, outcome: Outcome) {
    match outcome {
        Ok(()) => println!("ok {name} ({:.1} s)", began.elapsed().as_secs_f64()),
        Err(reason) => println!("FAILED {name}: {}", reason.to_string().replace('\n', " ")),
    }
}

/// Runs a step that is asynchronous, in at most a minute and a half.
pub async fn step(name: &str, run: impl Future<Output = Outcome>) {
    let began = Instant::now();
    let outcome = match tokio::time::timeout(PATIENCE * 3 / 2, run).await {
        Ok(outcome) => outcome,
        Err(_) => Err("not done in time".into()),
    };
    report(name, began, outcome);
}

/// Has the leader killed; returns when another one leads and the killed one is back.
pub fn fail_over() -> Outcome {
    println!("fail over");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    equal(answer.trim_end(), "done")
}

/// Fails unless the two are equal.
pub fn equal<A: PartialEq<B> + Debug, B: Debug>(found: A, expected: B) -> Outcome {
    holds(
        found == expected,
        format!("{found:?} instead of {expected:?}"),
    )
}

/// Fails with the reason unless the condition holds.
pub fn holds(condition: bool, reason: impl Display) -> Outcome {
    if condition {
        Ok(())
    } else {
        Err(reason.to_string().into())
    }
}

/// The connection string, the first of the last two arguments.
pub fn hosts() -> String {
    std::env::args()
        .nth_back(1)
        .expect("a connection string and a number of members")
}
