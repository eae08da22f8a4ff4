//! The manual page `smbeam.toml(5)`, from the keys of the configuration. man(7)

use smbeam_server::config::{Key, keys};

const HEAD: &str = "\
.TH smbeam.toml 5 \"\" smbeam\n\
.SH NAME\n\
smbeam.toml \\- configuration of an smbeam server\n\
.SH DESCRIPTION\n\
The file is TOML. \\fBsmbeam serve --config\\fR reads it, \\fBsmbeam config check\\fR reports \
mistakes in it, and \\fBsmbeam reload\\fR applies a change to a running server. A missing key \
has its default. \
Relative paths start at the directory of the file.\n\
.PP\n\
\\fBinclude\\fR = [\"conf.d/*.toml\"], as the first key of the file, adds further files: tables \
merge, and shares add up.\n\
.SH KEYS\n";

const TAIL: &str = "\
.SH ENVIRONMENT\n\
Each key has an environment variable, which overrides the files, such as \
\\fBSMBEAM_SERVER__LISTEN\\fR, and \\fBSMBEAM_SHARE_DATA__PATH\\fR for the share data. A list has \
the form of TOML, or commas. With \\fB_FILE\\fR at its end, a variable names a file with the \
value.\n\
.SH SEE ALSO\n\
.BR smbeam-serve (1),\n\
.BR smbeam-config (1),\n\
.BR smbeam-reload (1)\n";

/// The page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut section = String::new();
    for key in keys() {
        if key.section != section {
            section.clone_from(&key.section);
            let title = match &*section {
                "share" => "[[share]], once for each share".to_owned(),
                section => format!("[{section}]"),
            };
            page.push_str(&format!(".SS \"{title}\"\n"));
        }
        page.push_str(&described(&key));
    }
    page.push_str(TAIL);
    page
}

fn described(key: &Key) -> String {
    let mut text = format!(
        ".TP\n\\fB{}\\fR\n{}\n",
        escaped(&key.key),
        escaped(&key.description)
    );
    if !key.choices.is_empty() {
        text.push_str(&format!("One of: {}.\n", escaped(&key.choices.join(", "))));
    }
    text
}

/// A text without the marks of doc comments, and with the characters of roff escaped.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let text = text.replace("[`", "").replace("`]", "").replace('`', "");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_key() {
        let page = page();
        for key in keys() {
            let name = escaped(&key.key);
            assert!(page.contains(&format!(".TP\n\\fB{name}\\fR\n")), "{name}");
        }
        assert!(page.contains(".SS \"[[share]], once for each share\"\n"));
        let is_command = |line: &&str| line.starts_with('.');
        let known = [".TH", ".SH", ".SS", ".TP", ".PP", ".BR"];
        for line in page.lines().filter(is_command) {
            assert!(
                known.iter().any(|command| line.starts_with(command)),
                "{line}"
            );
        }
    }
}
