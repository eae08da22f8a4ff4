//! io_uring and epoll behind one face: executor, sockets, registered buffers, mailbox.
