//! Addresses of the ip scheme: `10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`.

use core::net::Ipv6Addr;

/// An address, or a range of addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix {
    /// IPv6; the two families never match each other.
    pub(crate) v6: bool,
    /// Leading bits that count.
    pub(crate) bits: u8,
    /// The address, left-aligned in 128 bits, with the bits that do not count at zero.
    pub(crate) address: u128,
}

impl Prefix {
    /// From the text of an entry; none if it is no valid one.
    pub(crate) fn parse(text: &str) -> Option<Prefix> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let whole = parse_address(address)?;
        match bits {
            None => Some(whole),
            Some(bits) => {
                let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= whole.bits)?;
                Some(whole.widened(bits))
            }
        }
    }

    /// The range of `bits` bits around this address.
    pub(crate) fn widened(self, bits: u8) -> Prefix {
        let mask = match bits {
            0 => 0,
            bits => u128::MAX << (128 - u32::from(bits)),
        };
        Prefix {
            bits,
            address: self.address & mask,
            ..self
        }
    }
}

/// The address of a peer or entry, as a range of one.
pub(crate) fn parse_address(text: &str) -> Option<Prefix> {
    if text.contains(':') {
        let text = text.split('%').next().unwrap_or(text);
        let address: Ipv6Addr = text.parse().ok()?;
        return Some(Prefix {
            v6: true,
            bits: 128,
            address: address.to_bits(),
        });
    }
    let address = parse_v4(text)?;
    Some(Prefix {
        v6: false,
        bits: 32,
        address: u128::from(address) << 96,
    })
}

/// Four decimal numbers; leading zeros are allowed, as in ZooKeeper.
fn parse_v4(text: &str) -> Option<u32> {
    let mut address = 0;
    let mut parts = 0;
    for part in text.split('.') {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        address = address << 8 | u32::from(part.parse::<u8>().ok()?);
        parts += 1;
        if parts > 4 {
            return None;
        }
    }
    (parts == 4).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(peer: &str, entry: &str) -> bool {
        let entry = Prefix::parse(entry).expect("a valid entry");
        let peer = parse_address(peer).expect("an address");
        peer.v6 == entry.v6 && peer.widened(entry.bits) == entry
    }

    #[test]
    fn ranges() {
        assert!(matches("10.1.2.3", "10.1.2.3"));
        assert!(!matches("10.1.2.3", "10.1.2.4"));
        assert!(matches("10.1.2.3", "10.1.0.0/16"));
        assert!(matches("10.1.2.3", "10.1.255.255/16"));
        assert!(!matches("10.2.2.3", "10.1.0.0/16"));
        assert!(matches("10.1.2.3", "0.0.0.0/0"));
        assert!(matches("::1", "::1"));
        assert!(matches("2001:db8::5", "2001:db8::/32"));
        assert!(matches("fe80::1%eth0", "fe80::/10"));
        assert!(!matches("2001:db9::5", "2001:db8::/32"));
        assert!(matches("::1", "::/0"));
        assert!(!matches("10.1.2.3", "::/0"));
        assert!(!matches("::1", "0.0.0.0/0"));
    }

    #[test]
    fn what_is_no_address() {
        for text in [
            "",
            "localhost",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.-1",
            "1.2.3.4/33",
            "1.2.3.4/",
            "1.2.3.4/-1",
            "1.2.3.4/x",
            "::1/129",
            ":::",
            "1.2.3.4/8/8",
            "1..3.4",
        ] {
            assert_eq!(Prefix::parse(text), None, "{text:?}");
        }
    }
}
