"""TLS in front of a port of this machine, with a certificate that is made for it and that clients of this process trust."""

from __future__ import annotations

import asyncio
import datetime
import os
import pathlib
import ssl
import tempfile
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A certificate for `localhost`, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key_file.write_bytes(text)
    return certificate_file, key_file


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class TlsProxy:
    """Listens until the process ends."""

    def __init__(self, behind: int) -> None:
        self.behind, self.port = behind, 0
        self.folder = tempfile.TemporaryDirectory()
        certificate_file, key_file = certificate(pathlib.Path(self.folder.name))
        # Programs trust what OpenSSL's standard paths hold.
        os.environ["SSL_CERT_FILE"] = str(certificate_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate_file, key_file)
        self.is_up = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        assert self.is_up.wait(10), "the proxy does not listen"

    async def serve(self) -> None:
        server = await asyncio.start_server(self.forward, "127.0.0.1", 0, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        self.is_up.set()
        async with server:
            await server.serve_forever()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            own_reader, own_writer = await asyncio.open_connection("127.0.0.1", self.behind)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, own_writer), pump(own_reader, writer))
