"""Blocks of configurations, of SQL and of messages in the guides are right.

nginx and HAProxy read their configurations, with certificates and ports of the test. The
files of systemd and Prometheus have the shape of such files. SQL is that of the store and
of its test. A message is one of the code, with other numbers.
"""

import configparser
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import lint
from pages import blocks

GUIDE = "core/README.md"
NGINX = "worker_processes 1;\npid {place}/pid;\nerror_log {place}/log;\n" \
    "events {{}}\nhttp {{\naccess_log off;\n{page}\n}}\n"
SQL = ("core/store/postgres_schema.c", "tests/unit/test_postgres.c")
# Page, and the files with the text.
MESSAGES = [
    ("core/docs/demo.md", "tests/demo/*.c"),
    ("core/docs/upgrades.md", "core/store/sqlite_format.c"),
]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or "refused"


def certificate(place):
    """Makes the file of a certificate and a key, once."""
    path = Path(place, "both.pem")
    if not path.exists():
        key = Path(place, "key.pem")
        refused = run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                       "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                       "-keyout", str(key), "-out", str(path)])
        lint.expect(not refused, refused)
        path.write_text(path.read_text() + key.read_text())
    return path


def own_files(code, place):
    """Returns a configuration with the certificate and the ports of the test."""
    code = re.sub(r"/etc/ssl/[\w-]+\.(?:pem|key)", str(certificate(place)), code)
    return code.replace("listen 443", "listen 127.0.0.1:4443").replace(":443", ":4443")


def check_nginx(code, place):
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if not program:
        return ""
    path = Path(place, "nginx.conf")
    path.write_text(NGINX.format(place=place, page=own_files(code, place)))
    return run([program, "-t", "-q", "-p", place, "-c", str(path)])


def check_haproxy(code, place):
    program = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if not program:
        return ""
    path = Path(place, "haproxy.cfg")
    path.write_text(own_files(code, place))
    return run([program, "-c", "-q", "-f", str(path)])


def check_ini(code, _):
    reader = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        reader.read_string(code)
    except configparser.Error as error:
        return str(error)
    known = {"Unit", "Socket", "Service", "Install"}
    return " ".join(set(reader.sections()) - known)


def check_yaml(code, _):
    wrong = [line for line in code.splitlines()
             if not re.fullmatch(r"(?:  )*(?:- )?[\w_]+:(?: [^\t]+)?", line)]
    return "\n".join(wrong)


def words(text):
    return set(re.findall(r"[A-Z]{5,}|\w+ = [\d.]+", re.sub(r'"\s*"', " ", text)))


def check_sql(code, _):
    return " ".join(words(code) - words("".join(lint.read(path) for path in SQL)))


CHECKS = {"nginx": check_nginx, "haproxy": check_haproxy, "ini": check_ini,
          "yaml": check_yaml, "sql": check_sql}


def check_message(code, pattern):
    """Looks for each word of the message in the files."""
    text = "".join(lint.read(path) for path in lint.files(pattern))
    missing = set(re.findall(r"[a-z]+", code)) - set(re.findall(r"[a-z]+", text))
    return f"{pattern} has no {', '.join(sorted(missing))}" if missing else ""


def self_check(place):
    for language, wrong in (("nginx", "server { listens 80; }"), ("ini", "[Unti]\na=b\n"),
                            ("haproxy", "frontends x\n"), ("yaml", "a: 1\n b = 2\n"),
                            ("sql", "GRANT DROP OF A TABLE autovacuum = 0.99")):
        if language in ("nginx", "haproxy") and not CHECKS[language]("}{", place):
            continue  # the program is not there
        lint.expect(CHECKS[language](wrong, place), f"{language}: {wrong!r} was let pass")
    lint.expect(check_message("demo ko: 1 segments", MESSAGES[0][1]), "a wrong message")


def main():
    findings, count = [], 0
    with tempfile.TemporaryDirectory() as place:
        self_check(place)
        for page in (GUIDE, "core/docs/metrics.md"):
            for line, language, code in blocks(lint.read(page)):
                if language in CHECKS:
                    count += 1
                    if wrong := CHECKS[language](code, place):
                        findings.append(f"{page}:{line}: {wrong}")
        for page, path in MESSAGES:
            for line, language, code in blocks(lint.read(page)):
                if language == "text":
                    count += 1
                    if wrong := check_message(code, path):
                        findings.append(f"{page}:{line}: {wrong}")
    lint.expect(count >= 8, f"{count} blocks are too few")
    lint.finish(findings, f"{count} blocks")


if __name__ == "__main__":
    main()
