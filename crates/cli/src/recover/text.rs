//! What is said to the operator.

use std::fmt::Write as _;

use quenda_server::ensemble::Server;
use quenda_server::recover::{Facts, Outcome};

/// What this member has.
pub(super) fn facts(facts: &Facts) -> String {
    let mut text = format!(
        "This is member {} of cluster {:#x}.\n\
         It has {} znodes and {} sessions; its last transaction is {:#x}.\n\
         Its log ends with entry {} of term {}; entries up to {} are known to be committed.\n",
        facts.member,
        facts.cluster,
        facts.znodes,
        facts.sessions,
        facts.last_zxid,
        facts.last.0,
        facts.last.1,
        facts.committed,
    );
    if let Some(ensemble) = &facts.ensemble {
        append(
            &mut text,
            format_args!(
                "The ensemble as it knew it last (configuration {:x}):\n",
                ensemble.version
            ),
        );
        for server in ensemble.servers() {
            let own = if server.id == facts.member {
                "   this member"
            } else {
                ""
            };
            append(&mut text, format_args!("  {}{own}\n", server.line()));
        }
    }
    text
}

/// Why nothing is done.
pub(super) fn nothing_to_do(facts: &Facts) -> String {
    format!(
        "\nNobody but member {} votes in it, so there is nothing to recover: start it with `quenda serve`.\n",
        facts.member
    )
}

/// What a recovery means.
pub(super) fn consequences(facts: &Facts) -> String {
    let mut text = format!(
        "\nRecovery makes member {} an ensemble of its own, in which it alone votes. Do this only if a majority of the\n\
         voters is lost for good. If they can be started again, start them instead: nothing is lost then.\n\
         \n\
         What is lost: every write that the other members acknowledged without this one. It may be many: as long as\n\
         member {} was down or cut off, it has missed them all. If another member is left as well, run this there too\n\
         and answer no: recover the one whose log has the higher term, and of two with the same term the later entry.\n",
        facts.member, facts.member
    );
    match facts.uncertain() {
        0 => {}
        entries => append(
            &mut text,
            format_args!(
                "What may turn up: {entries} log entries behind {} that are not known to be committed. They are kept,\n\
                 because writes that were acknowledged may be among them; others were never answered.\n",
                facts.committed
            ),
        ),
    }
    append(
        &mut text,
        format_args!(
            "\nWhat you must do: never start the other voters again with the data they have:\n{}\
             A majority of them would go on as the old cluster, beside this one, and clients would see two truths.\n\
             Empty their data directories first; then they come back empty, and you add them with reconfig.\n\n",
            list(facts.others())
        ),
    );
    text
}

/// The words that must be typed.
pub(super) fn confirmation(facts: &Facts) -> String {
    format!("recover member {}", facts.member)
}

/// What was done, and what is next.
pub(super) fn done(facts: &Facts, outcome: &Outcome) -> String {
    format!(
        "\nMember {} is alone now, in cluster {:#x}; transactions go on behind {:#x}.\n\
         Next:\n\
         \x20 1. Set reconfigEnabled=true and standaloneEnabled=false in its configuration, to be able to add members, and start it.\n\
         \x20    (Without the latter it would run alone from its second start on, and no member could join it.)\n\
         \x20 2. Empty the data directories of the others, start them, and add each with reconfig:\n{}",
        facts.member,
        outcome.cluster,
        outcome.zxid,
        list(facts.others()),
    )
}

fn list<'a>(servers: impl Iterator<Item = &'a Server>) -> String {
    let mut text = String::new();
    for server in servers {
        append(&mut text, format_args!("     {}\n", server.line()));
    }
    text
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use quenda_server::ensemble::Ensemble;

    use super::*;

    fn three() -> Facts {
        let server =
            |id: u64| Server::parse(&id.to_string(), &format!("h{id}:1:2")).expect("a line");
        Facts {
            member: 2,
            cluster: 0xc,
            ensemble: Some(Ensemble::new(0x1_0000_0000, (1..=3).map(server))),
            last: (40, 5),
            committed: 38,
            committed_zxid: 0x5_0000_0001,
            last_zxid: 0x5_0000_0002,
            znodes: 4,
            sessions: 1,
        }
    }

    #[test]
    fn the_operator_is_told_what_is_there_and_what_is_lost() {
        let shown = facts(&three());
        for part in [
            "member 2 of cluster 0xc",
            "entry 40 of term 5",
            "up to 38",
            "server.2=h2:1:2:participant   this member",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let warned = consequences(&three());
        for part in [
            "What is lost",
            "2 log entries behind 38",
            "never start the other voters",
            "server.1=h1:1:2:participant\n",
            "server.3=",
        ] {
            assert!(warned.contains(part), "{part} in {warned}");
        }
        assert!(!warned.contains("server.2="), "{warned}");
        let certain = Facts {
            committed: 40,
            ..three()
        };
        assert!(!consequences(&certain).contains("may turn up"));
        assert_eq!(confirmation(&three()), "recover member 2");
    }

    #[test]
    fn it_is_said_what_growing_again_needs() {
        let outcome = Outcome {
            cluster: 0xd,
            zxid: 0x1_0005_0000_0002,
            config: String::new(),
        };
        let told = done(&three(), &outcome);
        for part in [
            "reconfigEnabled=true and standaloneEnabled=false",
            "server.1=h1",
            "server.3=h3",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert!(!told.contains("server.2="), "{told}");
    }

    #[test]
    fn a_member_alone_is_told_to_start() {
        let alone = Facts {
            ensemble: None,
            ..three()
        };
        assert!(nothing_to_do(&alone).contains("nothing to recover"));
    }
}
