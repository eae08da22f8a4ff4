//! How messages move: the framings of direct TCP and of the NetBIOS session service.
#![forbid(unsafe_code)]
