//! SPNEGO and NTLM: token in, token out; and the file of users.
#![forbid(unsafe_code)]
