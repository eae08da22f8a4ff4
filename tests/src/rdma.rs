//! Shell scripts for a guest with RDMA.

/// The functions for every script.
const FUNCTIONS: &str = include_str!("rdma/functions.sh");

/// `body` with the functions in front, and with `variables`, which it sees by their names.
pub fn script(body: &str, variables: &[(&str, &str)]) -> String {
    let mut script = String::from(FUNCTIONS);
    for (name, value) in variables {
        script.push_str(&format!("{name}={}\n", quoted(value)));
    }
    script.push_str(body);
    script
}

/// The text as one word of the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::script;

    #[test]
    fn a_variable_is_one_word() {
        let script = script("echo $A", &[("A", "it's $B")]);
        assert!(script.ends_with("A='it'\\''s $B'\necho $A"));
    }
}
