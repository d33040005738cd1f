"""Reverse proxies in front of an HTTP server on loopback, each a child of the test.

    with start_nginx(upstream, "short") as front:
        ... talk to front.url ...

upstream is a port on 127.0.0.1. A front has its own free port and a temporary directory
with its configuration, its logs and, for TLS, the certificate front.ca that a client
must trust. It needs no root and nothing outside of that directory. When the body fails
the logs are printed and the directory stays.

Variants of both:
    plain   HTTP/1.1 on both sides, with long timeouts
    short   as plain; it cuts after 2 s without a byte
    h2      TLS outside with HTTP/2 and HTTP/1.1, HTTP/1.1 inside
and of nginx:
    http10  plain without any setting: nginx then speaks HTTP/1.0 inside
start_balancer is nginx in front of several servers: it asks them in turn, and no client
stays with its server.

Everything else is the default of the proxy, buffering of nginx included. nginx holds
back a stream without X-Accel-Buffering: no when it speaks HTTP/1.0 to the server; it
passes on chunks of HTTP/1.1 as they come.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
START_SECONDS = 15
STOP_SECONDS = 5

NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log info;
events {{
    worker_connections 4096;
}}
http {{
    access_log {directory}/access.log;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    {before}
    server {{
        listen 127.0.0.1:{port}{listen};
        {settings}
        location / {{
            proxy_pass http://{upstream};
        }}
    }}
}}
"""
NGINX_HTTP11 = 'proxy_http_version 1.1; proxy_set_header Connection "";'
# A server that did not answer is asked again all the same. Host is the client's; by
# default it would be the name of the group.
NGINX_GROUP = NGINX_HTTP11 + " proxy_set_header Host $host; proxy_connect_timeout 2s;"
NGINX_TLS = ("ssl_certificate {directory}/certificate.pem;"
             " ssl_certificate_key {directory}/key.pem;")
NGINX_VARIANTS = {  # the settings of the port, and of the server
    "plain": ("", NGINX_HTTP11),
    "http10": ("", ""),
    "short": ("", NGINX_HTTP11 + " proxy_read_timeout 2s;"),
    "h2": (" ssl http2", NGINX_HTTP11 + " " + NGINX_TLS),
}

HAPROXY = """\
global
    maxconn 512
    log stdout format raw local0 info
defaults
    mode http
    log global
    option httplog
    timeout connect 2s
    timeout client {patience}
    timeout server {patience}
frontend front
    bind 127.0.0.1:{port}{listen}
    default_backend server
backend server
    server only 127.0.0.1:{upstream}
"""
HAPROXY_VARIANTS = {  # the settings of the port, and the timeout
    "plain": ("", "60s"),
    "short": ("", "2s"),
    "h2": (" ssl crt {directory}/both.pem alpn h2,http/1.1", "60s"),
}


class Front:
    """The parts of a running proxy that a test uses."""

    def __init__(self, name, port, directory, pid, tls):
        self.name = name
        self.port = port
        self.directory = directory
        self.pid = pid
        self.ca = os.path.join(directory, "certificate.pem") if tls else None
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    def logs(self):
        """Returns all its logs as one text."""
        return read_logs(self.directory)


def start_nginx(upstream, variant="plain"):
    listen, settings = NGINX_VARIANTS[variant]
    return nginx(f"nginx {variant}", listen, settings, "", f"127.0.0.1:{upstream}")


def start_balancer(ports):
    servers = "".join(f" server 127.0.0.1:{port} max_fails=0;" for port in ports)
    return nginx("nginx balancer", "", NGINX_GROUP, f"upstream servers {{{servers} }}",
                 "servers")


def nginx(name, listen, settings, before, upstream):

    def prepare(directory, port):
        # When root runs nginx, its workers would run as another user, who cannot enter
        # the directory.
        user = "user root;" if os.geteuid() == 0 else ""
        text = NGINX.format(user=user, directory=directory, port=port, before=before,
                            upstream=upstream, listen=listen,
                            settings=settings.format(directory=directory))
        path = write(directory, "nginx.conf", text)
        return [find_program("nginx"), "-e", f"{directory}/error.log", "-p", directory,
                "-c", path]

    return running(name, prepare, "ssl" in listen)


def start_haproxy(upstream, variant="plain"):
    listen, patience = HAPROXY_VARIANTS[variant]

    def prepare(directory, port):
        text = HAPROXY.format(port=port, upstream=upstream, patience=patience,
                              listen=listen.format(directory=directory))
        return [find_program("haproxy"), "-db", "-f",
                write(directory, "haproxy.cfg", text)]

    return running(f"haproxy {variant}", prepare, "ssl" in listen)


@contextlib.contextmanager
def running(name, prepare, tls):
    directory = tempfile.mkdtemp(prefix="segue-front.")
    child = None
    try:
        if tls:
            make_certificate(directory)
        with reserved_port() as port:
            child = start(directory, prepare, port)
            yield Front(name, port, directory, child.pid, tls)
            if child.poll() is not None:
                raise RuntimeError(f"{name} ended by itself with {child.returncode}")
    except BaseException:
        stop(child)
        print(f"{name}, {directory}:", read_logs(directory), sep="\n", file=sys.stderr)
        raise
    stop(child)
    shutil.rmtree(directory)


def start(directory, prepare, port):
    with open(os.path.join(directory, "output.log"), "ab") as output:
        child = subprocess.Popen(prepare(directory, port), stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT,
                                 start_new_session=True, preexec_fn=die_with_parent)
    try:
        if accepts(child, port):
            return child
        raise RuntimeError("the proxy does not start")
    except BaseException:
        stop(child)
        raise


def die_with_parent(number=signal.SIGTERM):
    """In the child: asks for this signal when the thread that started it is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, number)


def accepts(child, port):
    """Waits until the proxy accepts connections; returns false when the child ends
    instead."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if child.poll() is not None:
            return False
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
            continue
        return child.poll() is None
    return False


def stop(child):
    """SIGTERM: both end at once, nginx with its workers."""
    if child is None:
        return
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextlib.contextmanager
def reserved_port():
    """Returns a port that no program gets which asks for any port, and that a proxy may
    listen on: the proxy sets SO_REUSEADDR too, and this socket does not listen."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def find_program(name):
    """Finds a program, also in directories that only root has in PATH."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin"
    found = shutil.which(name, path=path)
    if not found:
        raise RuntimeError(f"{name} is not installed")
    return found


def make_certificate(directory):
    """Makes certificate.pem for 127.0.0.1 and localhost, key.pem, and both in
    both.pem."""
    result = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", "key.pem", "-out", "certificate.pem"],
        cwd=directory, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"openssl: {result.stderr}")
    parts = [read(directory, "certificate.pem"), read(directory, "key.pem")]
    write(directory, "both.pem", "".join(parts))


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def read_logs(directory):
    names = [name for name in sorted(os.listdir(directory)) if name.endswith(".log")]
    return "".join(f"{name}:\n{read(directory, name)}" for name in names)
