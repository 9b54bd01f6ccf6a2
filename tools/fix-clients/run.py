"""Unmodified FIX engines against a venue of their own: python3 run.py WALRAS NAME COMMAND...

COMMAND is started with the venue's FIX ports of orders and of market data, a key's id and its secret. It prints STOP when the
venue is to be killed, waits for a line, prints START when it is to run again, and DONE at the end.
"""
import pathlib
import socket
import subprocess
import sys
import tempfile


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main(walras, name, command):
    folder = pathlib.Path(tempfile.mkdtemp())
    http, fix, data = free_port(), free_port(), free_port()
    config = folder / "walras.toml"
    config.write_text(
        f'[venue]\ndata = "{folder}/data"\n[http]\nlisten = "127.0.0.1:{http}"\n'
        f'[order_entry]\nlisten = ""\n[fix]\nlisten = "127.0.0.1:{fix}"\n'
        f'market_data_listen = "127.0.0.1:{data}"\n[log]\nsegment_bytes = 1048576\n'
    )

    def serve():
        venue = subprocess.Popen([walras, "serve", "--config", config], stdout=subprocess.PIPE, text=True)
        print(venue.stdout.readline().strip())
        return venue

    def ask(*args, key=folder / "data" / "operator.key"):
        ran = subprocess.run([walras, "--url", f"http://127.0.0.1:{http}", "--key", key, *args], capture_output=True, text=True)
        assert ran.returncode == 0, (args, ran.stdout, ran.stderr)

    venue = serve()
    try:
        for asset in ("BTC", "USD"):
            ask("admin", "asset", asset, "8")
        ask("admin", "instrument", "BTC/USD", "BTC", "USD", "--tick-size", "0.5", "--lot-size", "0.001", "--reference-price", "100")
        ask("admin", "phase", "BTC-USD", "continuous")
        for account in ("0", "1"):
            ask("admin", "account")
            for asset in ("BTC", "USD"):
                ask("admin", "deposit", account, asset, "100000")
            ask("admin", "key", "--account", account, "--algorithm", "hmac-sha256", "--out", folder / f"{account}.key")
        ask("order", "sell", "BTC/USD", "0.01", "--price", "100", key=folder / "1.key")
        key_id, secret = (folder / "0.key").read_text().strip().split(".")
        client = subprocess.Popen([*command, str(fix), str(data), key_id, secret], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        is_done = False
        for line in client.stdout:
            said = line.strip()
            print(f"{name}: {said}")
            is_done |= said == "DONE"
            if said == "STOP":
                venue.kill()
                venue.wait()
                client.stdin.write("\n")
                client.stdin.flush()
            if said == "START":
                venue = serve()
        return client.wait() == 0 and is_done
    finally:
        venue.kill()
        venue.wait()


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1], sys.argv[2], sys.argv[3:]) else f"{sys.argv[2]} failed")
