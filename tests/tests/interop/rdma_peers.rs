//! The Linux kernel's client and server over SMB Direct, on devices for iWARP and for RoCE, against
//! the two ends of smbeam. Both ends run in one guest. Its kernel has the devices.
//!
//! `cargo xtask test rdma` runs it. `SMBEAM_SUBJECT=ksmbd` puts the kernel's server in place of
//! ours: a failure then is not ours. `SMBEAM_TRANSPORT=tcp` works without RDMA.

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_client::{
    Client, Credentials, Endpoints, File, OpenOptions, Options, Protection, Transports, Wait,
};
use smbeam_tests::exercise::{Exerciser, Sizes, Storage};
use smbeam_tests::files::{assert_same_tree, give_tree_to, make_tree, write_random};
use smbeam_tests::guest::Guest;
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Lab;
use smbeam_tests::rdma;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{self, ALICE};

/// The first argument of this program in the guest, where it works on a share.
const EXERCISE: &str = "exercise";
/// Bytes of the files that take many messages. The larger takes longer than it takes to pull the
/// device out.
const LARGE_BYTES: u64 = 48 << 20;
const ENCRYPTED_BYTES: u64 = 16 << 20;
const BRIEF_BYTES: u64 = 4 << 20;
const LARGER_BYTES: u64 = 128 << 20;
const OPERATIONS: u32 = 300;
/// Enough operations that some are left when the script removes the device.
const RESET_OPERATIONS: u32 = 200;

/// The variant of one test.
#[derive(Clone, Copy)]
struct Case {
    script: &'static str,
    device: &'static str,
    /// Whether both ends are ours, and find RDMA by themselves.
    own: bool,
    /// Whether everything is encrypted.
    encrypted: bool,
    /// More options of the kernel's mount; where there are some, the exercises are left out.
    mount: &'static str,
    /// Whether the device is pulled out meanwhile.
    reset: bool,
}

const KERNEL_CLIENT: &str = include_str!("../../src/rdma/kernel-client.sh");
const OWN_CLIENT: &str = include_str!("../../src/rdma/own-client.sh");

const SIGNED: &str = "sign,rsize=131072,wsize=131072";
const CHANNELS: &str = "multichannel,max_channels=2";

const CASES: &[(&str, Case)] = &[
    ("kernel_client_siw", plain(KERNEL_CLIENT, "siw")),
    (
        "kernel_client_siw_encrypted",
        encrypted(KERNEL_CLIENT, "siw"),
    ),
    ("kernel_client_siw_reset", reset(KERNEL_CLIENT, "siw")),
    ("kernel_client_rxe", plain(KERNEL_CLIENT, "rxe")),
    (
        "kernel_client_rxe_encrypted",
        encrypted(KERNEL_CLIENT, "rxe"),
    ),
    ("kernel_client_rxe_reset", reset(KERNEL_CLIENT, "rxe")),
    ("kernel_client_siw_signed", mounted(SIGNED, "siw")),
    ("kernel_client_rxe_signed", mounted(SIGNED, "rxe")),
    // Its default reads do not fit into a message.
    (
        "kernel_client_rxe_encrypted_in_small_pieces",
        mounted("seal", "rxe"),
    ),
    ("kernel_client_siw_channels", mounted(CHANNELS, "siw")),
    ("kernel_client_rxe_channels", mounted(CHANNELS, "rxe")),
    ("own_client_siw", plain(OWN_CLIENT, "siw")),
    ("own_client_siw_encrypted", encrypted(OWN_CLIENT, "siw")),
    ("own_client_siw_reset", reset(OWN_CLIENT, "siw")),
    ("own_client_rxe", plain(OWN_CLIENT, "rxe")),
    ("own_client_rxe_encrypted", encrypted(OWN_CLIENT, "rxe")),
    ("own_client_rxe_reset", reset(OWN_CLIENT, "rxe")),
    ("own_ends_siw", own(plain(OWN_CLIENT, "siw"))),
    ("own_ends_rxe", own(plain(OWN_CLIENT, "rxe"))),
    ("own_ends_rxe_reset", own(reset(OWN_CLIENT, "rxe"))),
];

const fn plain(script: &'static str, device: &'static str) -> Case {
    Case {
        script,
        device,
        own: false,
        encrypted: false,
        mount: "",
        reset: false,
    }
}

const fn mounted(mount: &'static str, device: &'static str) -> Case {
    Case {
        mount,
        ..plain(KERNEL_CLIENT, device)
    }
}

const fn encrypted(script: &'static str, device: &'static str) -> Case {
    Case {
        encrypted: true,
        ..plain(script, device)
    }
}

const fn reset(script: &'static str, device: &'static str) -> Case {
    Case {
        reset: true,
        ..plain(script, device)
    }
}

const fn own(case: Case) -> Case {
    Case { own: true, ..case }
}

/// The command that this program runs inside the guest, if the command line names it.
pub(crate) fn guest_command() -> Option<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (command, rest) = arguments.split_first()?;
    if command != EXERCISE {
        return None;
    }
    Some(match exercise(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("exercise: {error:#}");
            ExitCode::FAILURE
        }
    })
}

pub(crate) fn tests() -> Vec<Test> {
    let cases = CASES.iter();
    cases
        .map(|(name, case)| Test::new(name, || case.run()))
        .collect()
}

impl Case {
    fn run(&self) -> Result<()> {
        let lab = Lab::find_with_rdma()?;
        let scratch = Scratch::new("rdma")?;
        let tree = scratch.path().join("tree");
        self.prepare(&scratch, &tree)?;
        let script = self.script(scratch.path());
        let report = Guest::with_rdma(&lab).run(&script)?;
        ensure!(report.code == Some(0), "{}", report.console);
        let rates = report
            .console
            .lines()
            .filter_map(|line| line.strip_prefix("rate: "));
        rates.for_each(|rate| println!("    {rate}"));
        assert_same_tree(&tree, &scratch.path().join("from-guest/tree"))
    }

    /// Puts the files and the programs where the guest sees them.
    fn prepare(&self, scratch: &Scratch, tree: &Path) -> Result<()> {
        let directory = scratch.path();
        make_tree(tree, 6)?;
        give_tree_to(tree, ALICE.id)?;
        let large = match (self.encrypted, self.mount) {
            (true, _) => ENCRYPTED_BYTES,
            (false, "" | CHANNELS) => LARGE_BYTES,
            (false, _) => BRIEF_BYTES,
        };
        write_random(&directory.join("large"), large, 7)?;
        if self.reset {
            write_random(&directory.join("larger"), LARGER_BYTES, 8)?;
        }
        fs::create_dir(directory.join("from-guest"))?;
        fs::copy(subject::program()?, directory.join("smbeam"))?;
        fs::copy(env!("CARGO_BIN_EXE_random_io"), directory.join("random_io"))?;
        fs::copy(env::current_exe()?, directory.join("rdma_peers"))?;
        Ok(())
    }

    fn script(&self, directory: &Path) -> String {
        let variable = |name, otherwise: &str| env::var(name).unwrap_or_else(|_| otherwise.into());
        let is_kernel = self.script == KERNEL_CLIENT;
        let options = match (is_kernel, self.encrypted) {
            // Encrypted messages of its default sizes are larger than it can send.
            (true, true) => "seal,rsize=131072,wsize=131072",
            (true, false) if self.mount.is_empty() => "sec=ntlmssp",
            (true, false) => self.mount,
            (false, true) => "--encrypt",
            (false, false) => "",
        };
        let (server, transport) = match (is_kernel, self.own) {
            (true, _) => ("smbeam", "smbdirect"),
            (false, true) => ("smbeam", "auto"),
            (false, false) => ("ksmbd", "smbdirect"),
        };
        let variables = [
            ("DEVICE", self.device),
            ("SERVER", &variable("SMBEAM_SUBJECT", server)),
            ("TRANSPORT", &variable("SMBEAM_TRANSPORT", transport)),
            ("OPTIONS", options),
            ("PROTECTION", if self.encrypted { "encrypt" } else { "" }),
            ("BRIEF", self.mount),
            ("RESET", if self.reset { "yes" } else { "" }),
            ("DIRECTORY", &directory.display().to_string()),
            ("NAME", ALICE.name),
            ("PASSWORD", ALICE.password),
            ("OPERATIONS", &OPERATIONS.to_string()),
            ("RESET_OPERATIONS", &RESET_OPERATIONS.to_string()),
        ];
        rdma::script(self.script, &variables)
    }
}

/// The work of this program in the guest: exercise a file of a share through the client's library.
fn exercise(arguments: &[String]) -> Result<()> {
    let [transport, protection, host, operations, sizes] = arguments else {
        bail!("usage: {EXERCISE} TRANSPORT PROTECTION HOST OPERATIONS SIZES");
    };
    let options = over(transport)?.protection(match protection.as_str() {
        "encrypt" => Protection::Encrypt,
        _ => Protection::AsAsked,
    });
    let credentials = Credentials::new(None, ALICE.name, ALICE.password);
    let client = Client::new(options)?;
    let session = client.connect(host, None, &credentials);
    let share = session.wait()?.share("data").wait()?;
    let sizes = match sizes.as_str() {
        "large" => Sizes::LARGE,
        _ => Sizes::SMALL,
    };
    let open = |options: OpenOptions| {
        let options = options.read(true).write(true);
        let opened = share.open("random", &options).wait();
        opened.context("cannot open the file")
    };
    let file = open(OpenOptions::new().create(true).truncate(true))?;
    let open = || open(OpenOptions::new());
    let operations = operations.parse()?;
    Exerciser::new(Remote { file, open }, sizes, 1).run(operations)?;
    share.remove_file("random").wait()?;
    println!("{EXERCISE}: {operations} operations over {transport}: no difference");
    Ok(())
}

/// The options of a client of this transport.
fn over(transport: &str) -> Result<Options> {
    let transports = match transport {
        "auto" => Transports::Auto,
        list => list.parse::<Endpoints>()?.into(),
    };
    Ok(Options::default().transports(transports))
}

/// A file of a share.
struct Remote<F> {
    file: File,
    open: F,
}

impl<F: Fn() -> Result<File>> Storage for Remote<F> {
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        Ok(self.file.write_all_at_blocking(bytes, offset)?)
    }

    fn read(&mut self, length: usize, offset: u64) -> Result<Vec<u8>> {
        let mut found = vec![0; length];
        let mut count = 0;
        while count < length {
            let wanted = vec![0; length - count];
            let (read, piece) = self.file.read_at(wanted, offset + count as u64).wait();
            match read? {
                0 => break,
                more => {
                    found[count..count + more].copy_from_slice(&piece[..more]);
                    count += more;
                }
            }
        }
        found.truncate(count);
        Ok(found)
    }

    fn set_len(&mut self, length: u64) -> Result<()> {
        Ok(self.file.set_len(length).wait()?)
    }

    fn length(&mut self) -> Result<u64> {
        Ok(self.file.len().wait()?)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(self.file.sync().wait()?)
    }

    fn reopen(&mut self) -> Result<()> {
        self.file = (self.open)()?;
        Ok(())
    }
}
