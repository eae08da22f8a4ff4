"""Opens the web page of a server in headless Chromium, and prints what it shows as JSON.

usage: page_in_chromium.py URL TOKEN SCREENSHOT

Sends a wrong token first, then TOKEN, and waits for rows of clients. Chromium is driven by the
DevTools protocol over a pipe: messages of JSON, each with a zero byte at the end.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time

TIME_LIMIT = 60
SIZE = {"width": 1280, "height": 1000, "deviceScaleFactor": 1, "mobile": False}


class Browser:
    """A browser with one page."""

    def __init__(self, directory):
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()
        # The descriptors 3 and 4 are those of the protocol.
        run = 'exec "$@" 3<&%d 4>&%d' % (to_read, to_write)
        program = [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions",
            "--user-data-dir=" + directory, "--remote-debugging-pipe",
        ]
        self.process = subprocess.Popen(
            ["bash", "-c", run, "run"] + program, pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.rest = b""
        self.events = []
        self.session = None

    def message(self):
        """The next message of the browser."""
        while b"\0" not in self.rest:
            got = os.read(self.of, 1 << 16)
            if not got:
                raise SystemExit("the browser has ended")
            self.rest += got
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        """Calls a method, and notes the events before its result."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit("%s: %s" % (method, message["error"]))
                return message["result"]
            self.events.append(message)

    def value(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit("%s: %s" % (script, result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, script):
        """Waits until an expression in the page is true."""
        deadline = time.monotonic() + TIME_LIMIT
        while not self.value(script):
            if time.monotonic() > deadline:
                raise SystemExit("not in time: " + script)
            time.sleep(0.1)


def send_token(browser, token):
    """Fills the form in, and sends it."""
    browser.value("document.getElementById('token').value = %s" % json.dumps(token))
    browser.value("document.querySelector('#login button').click()")


def main():
    url, token, screenshot = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        browser = Browser(directory)
        try:
            show(browser, url, token, screenshot)
        finally:
            browser.process.kill()
            browser.process.wait()


def show(browser, url, token, screenshot):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
    browser.session = attached["sessionId"]
    for domain in ("Network", "Runtime", "Log", "Page"):
        browser.call(domain + ".enable")
    browser.call("Emulation.setDeviceMetricsOverride", **SIZE)
    browser.call("Page.navigate", url=url)
    browser.wait_for("document.readyState === 'complete'")
    shown = {}
    if token:
        browser.wait_for("!document.getElementById('login').hidden")
        send_token(browser, "0" * 20)
        browser.wait_for("document.getElementById('state').textContent.includes('wrong')")
        shown["refused"] = browser.value("document.getElementById('state').textContent")
        send_token(browser, token)
    browser.wait_for("document.querySelectorAll('#clients tr').length > 1")
    # Some more values for the chart.
    time.sleep(float(os.environ.get("PAGE_SECONDS", "3")))
    browser.call("Runtime.evaluate", expression="0")
    for name in ("name", "sent", "received", "answered", "connections", "sessions", "opens"):
        shown[name] = browser.value("document.getElementById('%s').textContent" % name)
    rows = "[...document.querySelectorAll('#%s tr')].map(row => row.innerText)"
    for name in ("clients", "shares", "commands", "files"):
        shown[name] = browser.value(rows % name)
    shown["chart"] = browser.value("document.getElementById('area-sent').getAttribute('d')")
    image = browser.call("Page.captureScreenshot", format="png")["data"]
    with open(screenshot, "wb") as file:
        file.write(base64.b64decode(image))
    requests = [event["params"]["request"]["url"] for event in browser.events
                if event.get("method") == "Network.requestWillBeSent"]
    shown["requests"] = sorted(set(requests))
    shown["faults"] = [event["params"] for event in browser.events
                       if event.get("method") == "Runtime.exceptionThrown"
                       or event.get("method") == "Log.entryAdded"
                       and event["params"]["entry"]["level"] == "error"
                       # The refused token.
                       and "401" not in event["params"]["entry"]["text"]]
    print(json.dumps(shown))


main()
