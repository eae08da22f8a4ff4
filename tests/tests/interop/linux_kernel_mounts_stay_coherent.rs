//! A mount of a stock Linux kernel shows the changes of another client.

use std::fs;
use std::os::unix::fs::chown;

use anyhow::Result;
use smbeam_tests::mounts::{COMPLAINTS, MountStage, script};
use smbeam_tests::scratch::open_directory;
use smbeam_tests::subject::{ALICE, Subject};
use smbeam_tests::tests;

tests!(a_change_by_another_client_is_seen);

/// smbclient changes the file and the directory that the kernel has read and may keep.
fn a_change_by_another_client_is_seen() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "third")?;
    let directory = stage.share.join("directory");
    open_directory(&directory)?;
    for (name, text) in [("file", "before"), ("old", "old")] {
        let path = directory.join(name);
        fs::write(&path, text)?;
        chown(&path, Some(ALICE.id), Some(ALICE.id))?;
    }
    let text = stage.text("new", "the text after the change")?;
    let [cached, changed] = ["cached", "changed"].map(|name| stage.scratch.path().join(name));
    let commands = format!(
        r#"cd /mnt/a/directory
exec 7<file
test "$(cat <&7)" = before
test "$(cat file)" = before
test "$(ls)" = "$(printf 'file\nold')"
test "$(ls)" = "$(printf 'file\nold')"
touch {cached}
until [ -e {changed} ]; do sleep 0.05; done
test "$(cat file)" = "$(cat {text})"
test "$(cat /proc/self/fd/7)" = "$(cat {text})"
test "$(ls)" = "$(printf 'file\nnew')"
exec 7<&-
"#,
        cached = cached.display(),
        changed = changed.display(),
        text = text.display(),
    );
    let script = script(&[("a", "vers=3.1.1,actimeo=0")], &commands, COMPLAINTS);
    let mut running = stage.start(&script)?;
    running.wait_for_file(&cached)?;
    let client = stage.smbclient().directory(stage.scratch.path());
    client.run("cd directory\nput new file\nput new new\ndel old")?;
    fs::write(&changed, "")?;
    stage.finish(running)?;
    Ok(())
}
