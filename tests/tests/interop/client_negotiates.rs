//! Our client agrees with a server on everything that there is to agree on, and then keeps to it.

use crate::rig::proxy::{Kind, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, connect_through, for_each_transport, pattern};
use anyhow::{Context as _, Result, bail, ensure};
use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use smbeam_client::{
    Error, Options, Protection, Session, SessionInfo, Transport, Wait, WriteOptions,
};
use smbeam_tests::lab::Missing;
use smbeam_tests::raw::command;
use smbeam_tests::subject::Subject;
use wire::dialect::Dialect;

for_each_transport!(
    every_combination_is_agreed_on,
    the_best_is_agreed_on_by_default,
    the_highest_dialect_of_the_server_is_taken,
    algorithms_of_the_server_are_taken,
    a_server_that_requires_signatures_gets_them,
    a_server_that_requires_encryption_gets_it,
    a_share_that_requires_encryption_gets_it,
    a_session_without_encryption_is_refused_if_it_is_required,
);

const DIALECTS: [Dialect; 5] = [
    Dialect::SMB_2_0_2,
    Dialect::SMB_2_1,
    Dialect::SMB_3_0,
    Dialect::SMB_3_0_2,
    Dialect::SMB_3_1_1,
];
const PROTECTIONS: [Protection; 3] = [Protection::AsAsked, Protection::Sign, Protection::Encrypt];
/// More than one message takes, in every dialect.
const LARGE_BYTES: usize = 2_200_001;
const SMALL_BYTES: usize = 1000;

/// The only offers of the client, so that no others can be negotiated.
#[derive(Clone, Copy, Debug)]
struct Combination {
    dialect: Dialect,
    signing: SigningAlgorithm,
    cipher: Option<Cipher>,
    protection: Protection,
}

/// All combinations of the dialects. Before 3.1.1 the dialect determines the algorithms.
fn combinations() -> Vec<Combination> {
    let mut found = Vec::new();
    for dialect in DIALECTS {
        let (signings, ciphers): (&[_], Vec<_>) = if dialect < Dialect::SMB_3_0 {
            (&[SigningAlgorithm::HmacSha256], vec![None])
        } else if dialect < Dialect::SMB_3_1_1 {
            (&[SigningAlgorithm::AesCmac], vec![Some(Cipher::Aes128Ccm)])
        } else {
            (&SIGNING_PREFERENCE, CIPHER_PREFERENCE.map(Some).to_vec())
        };
        for signing in signings {
            for cipher in &ciphers {
                for protection in PROTECTIONS {
                    if cipher.is_some() || protection != Protection::Encrypt {
                        found.push(Combination {
                            dialect,
                            signing: *signing,
                            cipher: *cipher,
                            protection,
                        });
                    }
                }
            }
        }
    }
    found
}

fn every_combination_is_agreed_on(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let transports: &[Transport] = match peer.subject {
        Subject::Smbeam => &[peer.transport],
        Subject::Samba => &[Transport::Tcp, Transport::Nbt],
    };
    let combinations = combinations();
    // 2 of 2.0.2 and of 2.1, 3 of 3.0 and of 3.0.2, 3 * 4 * 3 of 3.1.1.
    ensure!(combinations.len() == 46, "{}", combinations.len());
    for (number, combination) in combinations.into_iter().enumerate() {
        let options = Options::default()
            .dialects(vec![combination.dialect])
            .signing_algorithms(vec![combination.signing])
            .ciphers(combination.cipher.into_iter().collect())
            .protection(combination.protection);
        for transport in transports {
            let proxy = Proxy::to(rig.endpoint_of(*transport))?;
            let agreed = connect_through(&proxy, options.clone())
                .map_err(Into::into)
                .and_then(|session| {
                    assert_agreed(&session.info(), combination)?;
                    round_trip(&rig, &session, number as u64)?;
                    session.close().wait()?;
                    assert_kept(peer, &proxy, combination.protection)
                });
            agreed.with_context(|| format!("{combination:?} over {transport}"))?;
        }
    }
    Ok(())
}

fn assert_agreed(info: &SessionInfo, combination: Combination) -> Result<()> {
    let said = Combination {
        dialect: info.dialect,
        signing: info.signing_algorithm,
        cipher: info.cipher,
        protection: match (info.is_encrypted, info.is_signed) {
            (true, _) => Protection::Encrypt,
            (false, true) => Protection::Sign,
            (false, false) => Protection::AsAsked,
        },
    };
    let is_same = said.dialect == combination.dialect
        && said.signing == combination.signing
        && said.cipher == combination.cipher
        && said.protection == combination.protection;
    ensure!(is_same && !info.is_guest, "the session says {info:?}");
    Ok(())
}

/// Sends and fetches a large and a small file, and checks the received bytes.
fn round_trip(rig: &Rig, session: &Session, seed: u64) -> Result<()> {
    let share = session.share(SHARE).wait()?;
    for length in [LARGE_BYTES, SMALL_BYTES] {
        let name = format!("file-{seed}-{length}");
        let bytes = pattern(length, seed);
        let new = WriteOptions::default();
        share.write(&name, bytes.clone(), &new).wait()?;
        rig.assert_holds(&name, &bytes)?;
        let read = share.read(&name).wait()?;
        ensure!(read == bytes, "{name} comes back as something else");
        share.remove_file(&name).wait()?;
        ensure!(!rig.path(&name).exists(), "{name} is still there");
    }
    Ok(())
}

/// Checks that the messages on the wire have the negotiated protection: only those of a login may
/// lack it. TLS hides all messages.
fn assert_kept(peer: Peer, proxy: &Proxy, protection: Protection) -> Result<()> {
    let seen = proxy.seen();
    if peer.transport == Transport::Quic {
        ensure!(seen.is_empty(), "over the wire went {seen:?}");
        return Ok(());
    }
    let is_login = |number| [command::NEGOTIATE, command::SESSION_SETUP].contains(&number);
    for way in [Way::There, Way::Back] {
        let kinds = || {
            let of_way = seen.keys().filter(move |(other, _)| *other == way);
            of_way.map(|(_, kind)| *kind)
        };
        let carries = |wanted| kinds().any(|kind| kind == wanted);
        let is_kept = match protection {
            Protection::AsAsked => {
                carries(Kind::Plain(command::WRITE)) && carries(Kind::Plain(command::READ))
            }
            Protection::Sign => {
                carries(Kind::Signed(command::WRITE))
                    && carries(Kind::Signed(command::READ))
                    && kinds().all(|kind| match kind {
                        Kind::Plain(number) => is_login(number),
                        kind => kind != Kind::Encrypted,
                    })
            }
            Protection::Encrypt => {
                carries(Kind::Encrypted)
                    && kinds().all(|kind| match kind {
                        Kind::Plain(number) | Kind::Signed(number) => is_login(number),
                        Kind::Encrypted | Kind::Other => true,
                    })
            }
        };
        ensure!(is_kept, "over the wire went {seen:?}");
    }
    Ok(())
}

fn the_best_is_agreed_on_by_default(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let best = Combination {
        dialect: Dialect::SMB_3_1_1,
        signing: SigningAlgorithm::AesGmac,
        cipher: Some(Cipher::Aes128Gcm),
        protection: Protection::AsAsked,
    };
    assert_agreed(&session.info(), best)?;
    round_trip(&rig, &session, 1)
}

fn the_highest_dialect_of_the_server_is_taken(peer: Peer) -> Result<()> {
    for (name, dialect) in [
        ("2.0.2", Dialect::SMB_2_0_2),
        ("2.1", Dialect::SMB_2_1),
        ("3.0", Dialect::SMB_3_0),
        ("3.0.2", Dialect::SMB_3_0_2),
    ] {
        let rig = Rig::with(peer, |plan| plan.max_dialect = Some(name))?;
        let session = rig.session()?;
        let info = session.info();
        ensure!(info.dialect == dialect, "{name}: {info:?}");
        round_trip(&rig, &session, 2).context(name)?;
        if dialect < Dialect::SMB_3_1_1 {
            let newer = rig.connect(Options::default().dialects(vec![Dialect::SMB_3_1_1]));
            assert_no_session(newer, |error| matches!(error, Error::Refused { .. }))?;
        }
    }
    Ok(())
}

/// smbd's configuration selects the algorithms; smbeam always supports all of them.
fn algorithms_of_the_server_are_taken(peer: Peer) -> Result<()> {
    use {Cipher as C, SigningAlgorithm as S};
    if peer.subject == Subject::Smbeam {
        return Err(Missing("smbeam has no such configuration".into()).into());
    }
    for (signing_name, signing, cipher_name, cipher) in [
        ("AES-128-GMAC", S::AesGmac, "AES-256-GCM", C::Aes256Gcm),
        ("AES-128-CMAC", S::AesCmac, "AES-128-CCM", C::Aes128Ccm),
        ("HMAC-SHA256", S::HmacSha256, "AES-128-GCM", C::Aes128Gcm),
        ("AES-128-CMAC", S::AesCmac, "AES-256-CCM", C::Aes256Ccm),
    ] {
        let rig = Rig::with(peer, |plan| {
            plan.samba_globals = vec![
                format!("server smb3 signing algorithms = {signing_name}"),
                format!("server smb3 encryption algorithms = {cipher_name}"),
            ];
        })?;
        for protection in PROTECTIONS {
            let session = rig.connect(Options::default().protection(protection))?;
            let wanted = Combination {
                dialect: Dialect::SMB_3_1_1,
                signing,
                cipher: Some(cipher),
                protection,
            };
            assert_agreed(&session.info(), wanted)?;
            round_trip(&rig, &session, 3).with_context(|| format!("{wanted:?}"))?;
        }
        // With a cipher that the server does not support there is no encryption and no session.
        let others = CIPHER_PREFERENCE
            .into_iter()
            .filter(|&other| other != cipher);
        let encrypted = rig.connect(
            Options::default()
                .ciphers(others.collect())
                .protection(Protection::Encrypt),
        );
        assert_no_session(encrypted, |error| matches!(error, Error::Untrusted { .. }))?;
    }
    Ok(())
}

fn a_server_that_requires_signatures_gets_them(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.signing_required = true)?;
    for dialect in DIALECTS {
        let proxy = Proxy::to(rig.endpoint())?;
        let options = Options::default().dialects(vec![dialect]);
        let session = connect_through(&proxy, options)?;
        let info = session.info();
        ensure!(info.is_signed && !info.is_encrypted, "{info:?}");
        round_trip(&rig, &session, 4).with_context(|| format!("{dialect:?}"))?;
        assert_kept(peer, &proxy, Protection::Sign)?;
    }
    Ok(())
}

fn a_server_that_requires_encryption_gets_it(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.encryption_required = true)?;
    for dialect in DIALECTS {
        let proxy = Proxy::to(rig.endpoint())?;
        let options = Options::default().dialects(vec![dialect]);
        let connected = connect_through(&proxy, options);
        if dialect < Dialect::SMB_3_0 {
            assert_no_session(connected, |error| error.status().is_some())?;
            continue;
        }
        let session = connected?;
        ensure!(session.info().is_encrypted, "{:?}", session.info());
        round_trip(&rig, &session, 5).with_context(|| format!("{dialect:?}"))?;
        assert_kept(peer, &proxy, Protection::Encrypt)?;
    }
    Ok(())
}

/// The session is not encrypted, and the requests to the share are.
fn a_share_that_requires_encryption_gets_it(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.shares[0].encryption_required = true)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let session = connect_through(&proxy, Options::default())?;
    ensure!(!session.info().is_encrypted, "{:?}", session.info());
    session.echo().wait()?;
    round_trip(&rig, &session, 6)?;
    if peer.transport == Transport::Quic {
        return Ok(());
    }
    let seen = proxy.seen();
    for way in [Way::There, Way::Back] {
        ensure!(seen.contains_key(&(way, Kind::Encrypted)), "{seen:?}");
        for number in [command::READ, command::WRITE] {
            let is_open = seen.contains_key(&(way, Kind::Plain(number)))
                || seen.contains_key(&(way, Kind::Signed(number)));
            ensure!(!is_open, "{seen:?}");
        }
    }
    Ok(())
}

fn a_session_without_encryption_is_refused_if_it_is_required(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.max_dialect = Some("2.1"))?;
    let encrypted = rig.connect(Options::default().protection(Protection::Encrypt));
    assert_no_session(encrypted, |error| matches!(error, Error::Untrusted { .. }))
}

fn assert_no_session(
    connected: Result<Session, Error>,
    is_right: impl Fn(&Error) -> bool,
) -> Result<()> {
    match connected {
        Ok(session) => bail!("there is a session: {:?}", session.info()),
        Err(error) => {
            ensure!(
                is_right(&error),
                "another error was due: {error} ({error:?})"
            );
            Ok(())
        }
    }
}
