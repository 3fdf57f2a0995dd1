"""A page as a browser has it."""

import shutil
import subprocess

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def browse(path, *options):
    """(the page's tree as the browser has it, the lines of its console)."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *options]
    command = [BROWSER, *flags, f"--user-data-dir={path.parent}/profile", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
