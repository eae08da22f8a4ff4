"""Users log in with names that have characters that Windows does not change to upper case.

NTLMv2 uses the user name in upper case, so both ends must use the table of Windows.
Reports: AgNO3/jcifs-ng#379, hierynomus/smbj#894, nova-video-player/aos-AVP#1927, miketeo/pysmb#47.
"""

import json
import os
import subprocess

from fieldlib import *

PASSWORD = "a1B2c3D4"
# A dotless i, an umlaut, and a micro sign. The last name is in other case than the account.
USERS = [
    "y\u0131ld\u0131z",
    "j\u00f6rg",
    "\u00b5ser",
    "\u017ftra\u00dfe",
    "\u0444\u0451\u0434\u043e\u0440",
]
LOGINS = [*USERS, "J\u00d6RG", "\u0424\u0401\u0414\u041e\u0420"]
# smbclient as a command with its arguments; tests/src/script.rs sets it.
SMBCLIENT = json.loads(os.environ.get("SMBEAM_SMBCLIENT", "[]"))


def log_in_with_smbclient(user):
    """The output of Samba's client after a login."""
    arguments = [f"//{HOST}/data", "-p", str(TCP_PORT), "-U", f"{user}%{PASSWORD}", "-c", "pwd"]
    result = subprocess.run([*SMBCLIENT, *arguments], capture_output=True, text=True, timeout=60)
    return result.stdout + result.stderr


def main():
    if not SMBCLIENT:
        skip("no smbclient")
    with Server(users=[(user, PASSWORD) for user in USERS]) as own:
        write_local(os.path.join(own.data, "file"), b"1")
        for user in LOGINS:
            output = log_in_with_smbclient(user).strip()
            check(f"smbclient logs in as {user}", "Current directory" in output, output[-200:])
            result = run("cat", url("file", user=user), password=PASSWORD)
            check_equal(f"smbeam logs in as {user}", (result.code, result.text), (0, "1"))
        output = log_in_with_smbclient("yildiz").strip()
        check("another name does not log in", "NT_STATUS_LOGON_FAILURE" in output, output[-200:])
    finish()


main()
