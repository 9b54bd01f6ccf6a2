"""Unmodified FIX engines against venues of their own: python3 run.py PROGRAM ENGINE COMMAND...

PROGRAM is walras. COMMAND is a client on ENGINE, and is started for each version of FIX, without TLS and with it, each time with a new
venue. It gets name=value arguments, prints PASSED or FAILED with the name of each step, and asks for what the venue's operator or
another participant is to do by PLEASE, as `Venue.please`, `Cluster.please` and `Leaf.please` list it; a line answers when it is done.
What the steps came to goes to results.json and into docs/fix.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "fix.md"
BEGIN, END = "<!-- clients: written by make fix-clients -->\n", "<!-- end of clients -->"

VERSIONS = ["FIX.4.2", "FIX.4.3", "FIX.4.4", "FIX.5.0", "FIX.5.0SP1", "FIX.5.0SP2"]
#: Where the version of each engine is pinned.
PINS = {
    "quickfixj": (HERE / "quickfixj" / "pom.xml", r"<quickfixj\.version>(.*?)<"),
    "quickfix-go": (HERE / "quickfix-go" / "go.mod", r"quickfixgo/quickfix v(\S+)"),
}
#: The steps of every client in their order, and the first version that has the messages of each.
STEPS = {
    "logon": "FIX.4.2",
    "security_list": "FIX.4.3",
    "security_status": "FIX.4.2",
    "session_status": "FIX.4.2",
    "book": "FIX.4.2",
    "order": "FIX.4.2",
    "replace": "FIX.4.2",
    "trade": "FIX.4.2",
    "refused": "FIX.4.2",
    "order_status": "FIX.4.2",
    "possible_resend": "FIX.4.2",
    "cancel": "FIX.4.2",
    "order_types": "FIX.4.2",
    "mass_cancel": "FIX.4.3",
    "full_refresh": "FIX.4.2",
    "end_request": "FIX.4.2",
    "halt": "FIX.4.2",
    "heartbeat": "FIX.4.2",
    "gap_at_the_venue": "FIX.4.2",
    "gap_at_the_client": "FIX.4.2",
    "restart": "FIX.4.2",
    "missed_while_away": "FIX.4.2",
    "lost_numbers": "FIX.4.2",
    "reset": "FIX.4.2",
    "logout": "FIX.4.2",
    "other_replica": "FIX.4.2",
    "leaf_gateway": "FIX.4.2",
}
PATIENCE_S = 240
#: Longest until a replica leads.
LEADER_S = 60
REPLICAS = 3
#: The programs of docs/fix.md that run next to each engine's client: what runs each (`None`: what runs the client), its place, and the
#: folder that it is run in.
DOCUMENTS: dict[str, list[tuple[list[str] | None, str, pathlib.Path | None]]] = {
    "quickfixj": [(None, str(PAGE.parent / "FixOrder.java"), None)],
    "quickfix-go": [
        (["go", "run"], str(PAGE.parent / "fix-order.go"), None),
        (["go", "run"], "./example", HERE / "quickfix-go"),
    ],
}


def steps_of(version: str) -> list[str]:
    return [step for step, since in STEPS.items() if since <= version]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Venue:
    """A venue with an open market and an offer of 0.01 at 100, and what its operator and another participant do."""

    program: str
    folder: pathlib.Path
    has_tls: bool
    #: Further sections of the configuration.
    more: str = ""
    ports: list[int] = field(default_factory=lambda: [free_port() for _ in range(3)])
    process: subprocess.Popen[str] | None = None
    operator: str = "data/operator.key"

    @property
    def log(self) -> pathlib.Path:
        return self.folder / "venue.log"

    @property
    def certificate(self) -> pathlib.Path:
        return self.folder / "data" / "order-entry.crt"

    def start(self) -> None:
        self.begin()
        self.await_start()

    def begin(self) -> None:
        http, orders, data = self.ports
        config = self.folder / "walras.toml"
        config.write_text(
            f'[venue]\ndata = "{self.folder}/data"\n[http]\nlisten = "127.0.0.1:{http}"\n[order_entry]\nlisten = ""\n'
            f'[fix]\nlisten = "127.0.0.1:{orders}"\nmarket_data_listen = "127.0.0.1:{data}"\ntls = "{"on" if self.has_tls else "off"}"\n'
            f"[log]\nsegment_bytes = 1048576\n{self.more}"
        )
        with self.log.open("ab") as log:
            command = [self.program, "serve", "--config", str(config)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def await_start(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError(f"the venue does not start: {self.log.read_text()}")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, *args: str, key: str = "") -> None:
        key_file = str(self.folder / (key or self.operator))
        command = [self.program, "--url", f"http://127.0.0.1:{self.ports[0]}", "--key", key_file, *args]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"walras {' '.join(args)}: {ran.stdout}{ran.stderr}")

    def set_up(self) -> None:
        self.make_market()
        self.please("sell 0.01 100")

    def make_market(self) -> None:
        for asset in ("BTC", "USD"):
            self.ask("admin", "asset", asset, "8")
        sizes = ["--tick-size", "0.5", "--lot-size", "0.001", "--reference-price", "100"]
        self.ask("admin", "instrument", "BTC/USD", "BTC", "USD", *sizes)
        self.please("phase continuous")
        for account in ("0", "1"):
            self.ask("admin", "account")
            for asset in ("BTC", "USD"):
                self.ask("admin", "deposit", account, asset, "100000")
            self.ask("admin", "key", "--account", account, "--algorithm", "hmac-sha256", "--out", str(self.folder / f"{account}.key"))
        self.ask("admin", "key", "--account", "0", "--algorithm", "ed25519", "--out", str(self.folder / "signing.key"))

    def leads(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/v1/cluster", timeout=LEADER_S) as answer:
                return bool(json.load(answer)["takes_commands"])
        except OSError:
            return False

    def commit(self) -> str:
        """The commit that the program was built from, as it says itself."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/v1/status", timeout=PATIENCE_S) as answer:
            return str(json.load(answer)["commit"])

    def please(self, what: str) -> str:
        """What clients may ask for."""
        match what.split():
            case ["kill"]:
                self.kill()
            case ["start"]:
                self.start()
            case ["phase", phase]:
                self.ask("admin", "phase", "BTC-USD", phase)
            case ["sell", size, price]:
                self.ask("order", "sell", "BTC/USD", size, "--price", price, key="1.key")
            case _:
                raise RuntimeError(f"nobody does this: {what}")
        return ""

    def arguments(self) -> list[str]:
        """What a client is to know of it."""
        _, orders, data = self.ports
        values = {
            "orders": orders,
            "data": data,
            "key": (self.folder / "0.key").read_text().strip(),
            "signing_key": (self.folder / "signing.key").read_text().strip(),
            "certificate": self.certificate if self.has_tls else "",
            "folder": self.folder,
        }
        return [f"{name}={value}" for name, value in values.items()]


@dataclass
class Leaf(Venue):
    """A cluster as `walras cluster local` makes it, with the same market. Its ports of FIX are those of a leaf gateway below a relay."""

    operator: str = "operator.key"

    @property
    def gateway(self) -> pathlib.Path:
        return self.folder / "gateway-101" / "data"

    @property
    def certificate(self) -> pathlib.Path:
        return self.gateway / "order-entry.crt"

    def start(self) -> None:
        super().start()
        if self.has_tls:
            # It is made without, since all of it is on the loopback.
            self.kill()
            for config in self.folder.glob("*/walras.toml"):
                config.write_text(config.read_text().replace("[fix]\n", '[fix]\ntls = "on"\n'))
            super().start()

    def begin(self) -> None:
        self.folder.mkdir(exist_ok=True)
        shape = ["--replicas", str(REPLICAS), "--gateways", "1", "--relays", "1", "--fair-access", "--dir", str(self.folder)]
        with self.log.open("ab") as log:
            command = [self.program, "cluster", "local", *shape]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def await_start(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        said = ""
        while "Ctrl-C" not in said:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the cluster does not start: {self.log.read_text()}")
            said += line
        leader = re.search(r"replica (\d+) leads", said)
        http = leader and re.search(rf"replica {leader[1]}: http://\S+?:(\d+)/", said)
        gateway = re.search(r"gateway 101: .*FIX at \S+:(\d+)  market data by FIX at \S+:(\d+)", said)
        if not http or not gateway:
            raise RuntimeError(f"the cluster does not say where it is: {said}")
        self.ports = [int(port) for port in (http[1], *gateway.groups())]

    def kill(self) -> None:
        """Ends it in order, since its processes are not ours."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def set_up(self) -> None:
        super().set_up()
        ids = [(self.folder / name).read_text().partition(".")[0] for name in ("0.key", "signing.key")]
        known, deadline = self.gateway / "keys.json", time.monotonic() + LEADER_S
        while not (known.exists() and all(key_id in known.read_text() for key_id in ids)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the gateway does not know the keys: {self.log.read_text()}")
            time.sleep(0.01)

    def please(self, what: str) -> str:
        """What clients may ask for. The answer to the start is what a client is to know."""
        if what != "leaf start":
            return super().please(what)
        self.start()
        self.set_up()
        return " ".join(self.arguments())


class Cluster:
    """Three replicas with fair access and an open market. The leader is the first one that a client tries."""

    def __init__(self, program: str, folder: pathlib.Path, has_tls: bool) -> None:
        self.folder, self.has_tls = folder, has_tls
        self.replicas = [Venue(program, folder / f"replica-{at}", has_tls) for at in range(1, REPLICAS + 1)]

    def start(self) -> None:
        links = [free_port() for _ in self.replicas]
        peers = [
            f"{at}=127.0.0.1:{link} http=127.0.0.1:{replica.ports[0]}"
            for at, (link, replica) in enumerate(zip(links, self.replicas, strict=True), 1)
        ]
        genesis = list(range(1, REPLICAS + 1))
        for at, (link, replica) in enumerate(zip(links, self.replicas, strict=True), 1):
            replica.more = (
                f'[cluster]\nreplica = {at}\nlisten = "127.0.0.1:{link}"\ninsecure_loopback = true\n'
                f"genesis = {genesis}\npeers = {json.dumps(peers)}\n"
                # They share a machine, so their clocks are one.
                '[fair_access]\nsequencing = "500us"\nbound_us = 10\n'
            )
            replica.folder.mkdir(parents=True)
            replica.begin()
        for replica in self.replicas:
            replica.await_start()
        leader = self.leader()
        leader.make_market()
        self.replicas.remove(leader)
        self.replicas.insert(0, leader)

    def leader(self) -> Venue:
        deadline = time.monotonic() + LEADER_S
        while time.monotonic() < deadline:
            for replica in self.replicas:
                if replica.process is not None and replica.leads():
                    return replica
            time.sleep(0.01)
        raise RuntimeError(f"no replica leads: {self.said()}")

    def kill(self) -> None:
        for replica in self.replicas:
            replica.kill()

    def said(self) -> str:
        """What each replica said last."""
        logs = [replica.log for replica in self.replicas if replica.log.exists()]
        return "".join(f"{line}\n" for log in logs for line in log.read_text().splitlines()[-10:])

    def please(self, what: str) -> str:
        """What clients may ask for. The answer to the start is what a client is to know."""
        match what.split():
            case ["cluster", "start"]:
                self.start()
                return self.arguments()
            case ["cluster", "kill"]:
                self.replicas[0].kill()
                self.leader()
            case ["cluster", "sell", size, price]:
                key = str(self.replicas[0].folder / "1.key")
                self.leader().ask("order", "sell", "BTC/USD", size, "--price", price, key=key)
            case _:
                raise RuntimeError(f"nobody does this: {what}")
        return ""

    def arguments(self) -> str:
        first = self.replicas[0].folder
        certificates = self.folder / "certificates.pem"
        if self.has_tls:
            certificates.write_text("".join(replica.certificate.read_text() for replica in self.replicas))
        values = {
            "orders": ",".join(str(replica.ports[1]) for replica in self.replicas),
            "data": ",".join(str(replica.ports[2]) for replica in self.replicas),
            "key": (first / "0.key").read_text().strip(),
            "signing_key": (first / "signing.key").read_text().strip(),
            "certificate": certificates if self.has_tls else "",
            "folder": self.folder,
        }
        return " ".join(f"{name}={value}" for name, value in values.items())


def run_client(program: str, command: list[str], version: str, has_tls: bool, next_expected: bool) -> tuple[list[str], str]:
    """The steps that a client passed, and the program's commit."""
    passed: list[str] = []
    commit = ""
    with tempfile.TemporaryDirectory() as folder:
        venue = Venue(program, pathlib.Path(folder), has_tls)
        cluster = Cluster(program, pathlib.Path(folder) / "cluster", has_tls)
        leaf = Leaf(program, pathlib.Path(folder) / "leaf", has_tls)
        client = None
        try:
            venue.start()
            venue.set_up()
            commit = venue.commit()
            # A client that hangs is a client that failed.
            settings = [f"version={version}", f"next_expected={'Y' if next_expected else 'N'}"]
            limited = ["timeout", str(PATIENCE_S), *command, *settings, *venue.arguments()]
            client = subprocess.Popen(limited, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert client.stdin is not None and client.stdout is not None
            for line in client.stdout:
                word, _, rest = line.strip().partition(" ")
                if word == "PLEASE":
                    asked = {"cluster": cluster, "leaf": leaf}.get(rest.partition(" ")[0], venue)
                    client.stdin.write(f"{asked.please(rest)}\n")
                    client.stdin.flush()
                elif word == "PASSED":
                    passed.append(rest)
                else:
                    print(f"  {version}{' by TLS' if has_tls else ''}: {line.strip()}", flush=True)
            if client.wait() != 0:
                print("".join(f"  venue: {line}\n" for line in venue.log.read_text().splitlines()[-10:]), flush=True)
                print("".join(f"  cluster: {line}\n" for line in cluster.said().splitlines()), flush=True)
                logs = sorted(leaf.folder.glob("*/*.log"))
                print("".join(f"  leaf: {log}: {line}\n" for log in logs for line in log.read_text().splitlines()[-5:]), flush=True)
        finally:
            if client is not None and client.poll() is None:
                # Which `timeout` passes on.
                client.terminate()
                client.wait()
            for started in (venue, cluster, leaf):
                started.kill()
    return passed, commit


def run_document(program: str, runner: list[str], file: str, where: pathlib.Path | None) -> bool:
    """Whether a program of docs/fix.md enters an order and cancels it."""
    with tempfile.TemporaryDirectory() as folder:
        venue = Venue(program, pathlib.Path(folder), False)
        try:
            venue.start()
            venue.set_up()
            key_id, secret = (venue.folder / "0.key").read_text().strip().split(".")
            limited = ["timeout", str(PATIENCE_S), *runner, file, str(venue.ports[1]), key_id, secret]
            ran = subprocess.run([*limited, "BTC/USD", "90"], capture_output=True, text=True, cwd=where)
        finally:
            venue.kill()
    # QuickFIX/J logs to the same place.
    said = [line.strip() for line in ran.stdout.splitlines() if line.startswith("report")]
    if said != ["report 0", "report 4"]:
        print(f"  {file}: {ran.stdout}{ran.stderr}", flush=True)
    return said == ["report 0", "report 4"]


def table(results: dict[str, dict[str, object]]) -> str:
    """The table of the document."""
    lines = ["| engine | version | FIX | steps passed | not passed | on |", "| --- | --- | --- | --- | --- | --- |"]
    for engine, result in results.items():
        sessions = result["sessions"]
        assert isinstance(sessions, dict)
        for version, session in sessions.items():
            failed = ", ".join(f"`{name}`" for name in session["failed"]) or "none"
            name = version.removeprefix("FIX.").replace("SP", " SP")
            counts = f"{session['passed']} of {session['total']}"
            lines.append(f"| {engine} | {result['version']} | {name} | {counts} | {failed} | {result['date']} |")
    return "\n".join(lines) + "\n"


def record(engine: str, commit: str, sessions: dict[str, dict[str, object]]) -> None:
    """Notes how an engine did, in the place of how it did before."""
    file, pattern = PINS[engine]
    pinned = re.search(pattern, file.read_text())
    assert pinned, f"{file} pins no version"
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[engine] = {
        "version": pinned[1],
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "passed": sum(int(str(session["passed"])) for session in sessions.values()),
        "total": sum(int(str(session["total"])) for session in sessions.values()),
        "sessions": sessions,
    }
    results = dict(sorted(results.items()))
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    assert rest, f"{PAGE} has no line {BEGIN!r}"
    PAGE.write_text(before + BEGIN + table(results) + END + rest.partition(END)[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=VERSIONS, help="this version alone, and write no results")
    parser.add_argument("program")
    parser.add_argument("engine", choices=sorted(PINS))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    sessions: dict[str, dict[str, object]] = {}
    commit = ""
    for version in [args.only] if args.only else VERSIONS:
        expected, count, failed = steps_of(version), 0, []
        for has_tls in (False, True):
            # QuickFIX/J says the number that it expects where the version has that, and once it asks for what it lacks instead.
            next_expected = args.engine == "quickfixj" and version >= "FIX.4.4" and not has_tls
            passed, commit = run_client(args.program, args.command, version, has_tls, next_expected)
            count += len([step for step in expected if step in passed])
            failed += [f"{step}{' (TLS)' if has_tls else ''}" for step in expected if step not in passed]
        total = 2 * len(expected)
        if version == "FIX.4.4":
            is_passed = True
            for runner, file, where in DOCUMENTS[args.engine]:
                runner = runner or args.command[: args.command.index("Main")]
                is_passed &= run_document(args.program, runner, file, where)
            total, count, failed = total + 1, count + is_passed, failed + ([] if is_passed else ["document"])
        sessions[version] = {"passed": count, "total": total, "failed": failed}
        print(f"{args.engine}: {json.dumps({version: sessions[version]})}", flush=True)
    if not args.only:
        record(args.engine, commit, sessions)
    return 1 if any(session["failed"] for session in sessions.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
