//! One transport connection. \[MS-SMB2\] 3.2.1.2
