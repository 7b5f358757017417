//! Sending a part of the clients to other members.

use quenda_frontend::CloseReason;
use serde_json::Value;

use super::Admin;
use super::json::{Fields, field};

/// Closes the connections of as many clients as the body says; they go on elsewhere, with their sessions.
///
/// # Errors
/// The body does not say how many.
pub(super) fn shed(admin: &Admin, body: &[u8]) -> Result<Fields, String> {
    let percentage = percentage(body)?;
    let mut clients = admin.shared.registry.all();
    clients.retain(|handle| handle.connection.lock().session().is_some());
    let count = clients.len() * percentage / 100;
    // The registry keeps them in no order, so this is as good as a draw.
    for handle in clients.iter().take(count) {
        handle.close(CloseReason::Member);
    }
    Ok(vec![
        field("connections_shed", count as u64),
        field("percentage_requested", percentage as u64),
    ])
}

fn percentage(body: &[u8]) -> Result<usize, String> {
    const USAGE: &str = "say how many clients to send away, as in {\"percentage\": 20}";
    let wish: Value = serde_json::from_slice(body).map_err(|_| USAGE.to_owned())?;
    let value = wish.get("percentage").ok_or(USAGE)?;
    let number = value.as_u64().filter(|number| *number <= 100);
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("percentage: {value} is not a whole number from 0 to 100"))
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn the_body_says_how_many() {
        assert_eq!(percentage(br#"{"percentage": 20}"#), Ok(20));
        for (body, part) in [
            ("", "say how many"),
            ("{}", "say how many"),
            ("[1]", "say how many"),
            (r#"{"percentage": 101}"#, "101 is not"),
            (r#"{"percentage": -1}"#, "-1 is not"),
            (r#"{"percentage": 1.5}"#, "1.5 is not"),
            (r#"{"percentage": "all"}"#, "is not a whole number"),
        ] {
            let error = percentage(body.as_bytes()).expect_err(body);
            assert!(error.contains(part), "{body}: {error}");
        }
    }
}
