"""Shares a directory by impacket's server: PORT SHARE DIRECTORY USER PASSWORD."""

import sys

from impacket.ntlm import compute_lmhash, compute_nthash
from impacket.smbserver import SimpleSMBServer


def main(port, share, directory, user, password):
    server = SimpleSMBServer(listenAddress="127.0.0.1", listenPort=int(port))
    server.addShare(share, directory)
    server.setSMB2Support(True)
    server.addCredential(user, 0, compute_lmhash(password), compute_nthash(password))
    server.start()


main(*sys.argv[1:])
