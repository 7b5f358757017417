//! How much calculation the opening of a store may take. What asks for more would keep the server from starting; read
//! again, it would take the memory of a server that has clients.

use pkcs8::pkcs5::pbes2::Kdf;

use crate::limits::{STORE_ITERATIONS_MAX, STORE_SCRYPT_BYTES_MAX};

/// Whether a key may be derived so often over.
pub(super) fn may_repeat(iterations: u32) -> bool {
    iterations <= STORE_ITERATIONS_MAX
}

/// Whether a key may be derived in this way.
pub(super) fn may_derive(way: &Kdf) -> bool {
    match way {
        Kdf::Pbkdf2(pbkdf2) => may_repeat(pbkdf2.iteration_count),
        Kdf::Scrypt(scrypt) => {
            let block = 128 * u64::from(scrypt.block_size) * u64::from(scrypt.parallelization);
            let bytes = scrypt.cost_parameter.checked_mul(block);
            bytes.is_some_and(|bytes| bytes <= STORE_SCRYPT_BYTES_MAX)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use der::Decode;
    use pkcs8::EncryptedPrivateKeyInfoRef;
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    /// The way of the key in a file, some of whose bytes are changed.
    fn is_taken(pem: &str, change: impl Fn(&mut Vec<u8>)) -> bool {
        let section = pem.split("-----BEGIN ENCRYPTED").nth(1).expect("a key");
        let section = format!("-----BEGIN{section}").replace(" ENCRYPTED PRIVATE", " PRIVATE");
        let key = PrivatePkcs8KeyDer::from_pem_slice(section.as_bytes()).expect("a section");
        let mut bytes = key.secret_pkcs8_der().to_vec();
        change(&mut bytes);
        let key = EncryptedPrivateKeyInfoRef::from_der(&bytes).expect("a key");
        may_derive(&key.encryption_algorithm.pbes2().expect("PBES2").kdf)
    }

    fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
        let at = bytes.windows(old.len()).position(|window| window == old);
        bytes[at.expect("the number")..][..new.len()].copy_from_slice(new);
    }

    #[test]
    fn scrypt_may_take_some_memory() {
        let pem = include_str!("golden/keystore-scrypt.pem");
        assert!(is_taken(pem, |_| {}));
        // The size of a block, then the cost.
        assert!(!is_taken(pem, |key| replace(
            key,
            &[2, 2, 0x40, 0, 2, 1, 8],
            &[2, 2, 0x40, 0, 2, 1, 127]
        )));
    }

    #[test]
    fn repetitions_are_bounded() {
        assert!(is_taken(include_str!("golden/keystore-aes.pem"), |_| {}));
        assert!(may_repeat(STORE_ITERATIONS_MAX) && !may_repeat(STORE_ITERATIONS_MAX + 1));
    }
}
