"""Notifications by the real binary, to a receiver on loopback: told once, retried, resolved, kept over kill -9."""
import http.server
import json
import os
import queue
import re
import signal
import stat
import sys
import threading
import unittest

from patience import patience
from sandbox import TESTS, Sandbox

BINARY = sys.argv.pop(1)
FAKE = os.environ.get("VRAMTRACK_FAKE_LIBRARY")
LIMIT_S = patience(30)


class Receiver:
    """Takes POSTs; answers with the statuses in `statuses`, then with 200. `got` holds (status, path, headers, body)."""

    def __init__(self, statuses=(), port=0):
        self.got = queue.Queue()
        self.statuses = list(statuses)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                # Recorded before the answer: a test that waits for it may end the sender while that waits for the answer.
                receiver.got.put((status, self.path, dict(self.headers), json.loads(body)))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/s3cret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next(self):
        return self.got.get(timeout=LIMIT_S)

    def all(self):
        out = []
        while not self.got.empty():
            out.append(self.got.get_nowait())
        return out


class NotificationTest(unittest.TestCase):
    def setUp(self):
        self.box = self.enterContext(Sandbox(BINARY)) if hasattr(self, "enterContext") else Sandbox(BINARY).__enter__()
        if not hasattr(self, "enterContext"):
            self.addCleanup(self.box.__exit__)

    @staticmethod
    def settings(**values):
        out = []
        for key, value in values.items():
            out += ["--set", f"notify.{key.replace('_', '-')}={value}"]
        return out


class Simulated(NotificationTest):
    def simulate(self, *args, scenario="leaking_training", exit_code=0):
        result = self.box.run("simulate", scenario, "--notify", *args)
        self.assertEqual(result.returncode, exit_code, result.stderr)
        return result

    def test_a_leak_is_told_once_though_two_series_show_it(self):
        with Receiver() as receiver:
            self.simulate(*self.settings(webhook=receiver.url))
            bodies = [b for _, _, _, b in receiver.all()]
        self.assertEqual([b["event"] for b in bodies if b["event"] != "escalated"], ["raised", "resolved"])
        self.assertEqual({b["incident"] for b in bodies}, {bodies[0]["incident"]})
        self.assertEqual(len({b["id"] for b in bodies}), len(bodies))
        first = bodies[0]
        self.assertEqual(first["schema"], "vramtrack.notification.v1")
        self.assertEqual(first["simulated"], "leaking_training")
        self.assertEqual(first["alert"]["schema"], "vramtrack.alert.v1")
        self.assertIn("because", first["text"])
        self.assertEqual(first["pid"], 4242)

    def test_what_is_printed_as_one_alert_is_sent_as_one_incident(self):
        listed = [line.split()[0] for line in self.box.run("simulate", "--list").stdout.decode().splitlines()]
        self.assertIn("unseen_leak", listed)
        scenarios = [*listed, *(str(TESTS / "scenarios" / f"{name}.toml") for name in ("leak_two_leaks", "leak_one_rank_of_eight"))]
        for scenario in scenarios:
            with self.subTest(scenario=scenario), Receiver() as receiver:
                # Notifications are sent as they are printed: at the time of their samples, however many come at once.
                out = self.simulate(*self.settings(webhook=receiver.url, max_per_hour=10000), scenario=scenario).stdout.decode()
                bodies = [b for _, _, _, b in receiver.all()]
                counts = re.search(r"samples\): (?:(\d+) alerts? raised, (\d+) cleared|no alert)", out)
                raised, cleared = (int(n or 0) for n in counts.groups())
                events = [b["event"] for b in bodies]
                self.assertEqual((events.count("raised"), events.count("resolved")), (raised, cleared), out)
                self.assertEqual(len({b["incident"] for b in bodies}), raised)
                self.assertEqual(events.count("escalated"), len(re.findall(r"(?m)^\S.*  ESCALATED  ", out)))

    def test_healthy_programs_tell_nothing(self):
        with Receiver() as receiver:
            self.simulate(*self.settings(webhook=receiver.url), scenario="healthy_training")
            self.assertEqual(receiver.all(), [])

    def test_slack_gets_its_shape(self):
        with Receiver() as receiver:
            self.simulate(*self.settings(slack=receiver.url))
            bodies = [b for _, _, _, b in receiver.all()]
        self.assertTrue(bodies)
        for body in bodies:
            self.assertEqual(list(body), ["text"])
        self.assertIn("[simulated] ", bodies[0]["text"])

    def test_a_token_is_sent_and_needs_its_file(self):
        self.box.write("token", "t0ken\n")
        with Receiver() as receiver:
            self.simulate(*self.settings(webhook=receiver.url, webhook_token_file=self.box.work / "token"))
            self.assertEqual(receiver.next()[2]["Authorization"], "Bearer t0ken")
        err = self.simulate(*self.settings(webhook="http://127.0.0.1:1/", webhook_token_file="/no/such"), exit_code=1).stderr
        self.assertIn(b"/no/such", err)

    def test_a_program_gets_the_alert(self):
        script = self.box.work / "told.sh"
        script.write_text("#!/bin/sh\ncat >>told.json\necho \"$VRAMTRACK_ALERT_EVENT $VRAMTRACK_ALERT_SEVERITY $1\" >>told.txt\n")
        script.chmod(0o755)
        self.simulate(*self.settings(exec=f'["{script}", "a b;c"]'))
        told = (self.box.work / "told.txt").read_text().splitlines()
        self.assertEqual([t.split()[0] for t in told if not t.startswith("escalated")], ["raised", "resolved"])
        self.assertTrue(all(t.endswith("a b;c") for t in told))
        rows = [json.loads(line) for line in (self.box.work / "told.json").read_text().splitlines()]
        self.assertEqual(rows[0]["event"], "raised")

    def test_what_is_not_delivered_is_said_and_keeps_the_address_secret(self):
        result = self.simulate(*self.settings(webhook="http://127.0.0.1:1/s3cret"), exit_code=1)
        self.assertIn(b"notification to webhook failed: http://127.0.0.1:1", result.stderr)
        self.assertIn(b"the connection failed", result.stderr)
        self.assertIn(b"not delivered", result.stderr)
        self.assertNotIn(b"kept", result.stderr)
        self.assertNotIn(b"s3cret", result.stderr)

    def test_nobody_to_tell_is_an_error(self):
        self.assertIn(b"no receiver is configured", self.simulate(exit_code=2).stderr)

    def test_wrong_settings_are_named(self):
        for values, words in (({"webhook": "ftp://host/"}, b"http://"), ({"webhook": "http://u:p@host/"}, b"password")):
            self.assertIn(words, self.simulate(*self.settings(**values), exit_code=1).stderr)
        err = self.simulate(*self.settings(webhook="http://h/", min_severity="loud"), exit_code=2).stderr
        self.assertIn(b"watch, warning or critical", err)


@unittest.skipUnless(FAKE, "VRAMTRACK_FAKE_LIBRARY names no fake NVML library")
class Watched(NotificationTest):
    LEAK = "process gpu=0 pid=self list=C used=1G+8M\n"

    def watch(self, scenario, *args):
        """Starts a watch on a fake GPU; each tick takes 0.1 s."""
        self.box.write("nvml.txt", "gpu 0 uuid=GPU-0 name=Fake pci=00000000:1D:00.0 total=80G used=1G\n" + scenario)
        environment = self.box.environment
        self.box.environment = lambda extra=None: {**environment(extra), "VRAMTRACK_FAKE_NVML": str(self.box.work / "nvml.txt")}
        try:
            return self.box.start("watch", "--detector", "linear_trend", "--set", "minimum-duration-minutes=0", "--set",
                                  "minimum-samples=10", "--interval", "0.1s", "--every", "1h", "--source", "nvml", "--set",
                                  f"sources.nvml-library={FAKE}", *args)
        finally:
            self.box.environment = environment

    def end(self, watch, how=signal.SIGTERM):
        watch.send_signal(how)
        out, err = watch.communicate(timeout=LIMIT_S)
        return out.decode(), err.decode()

    @property
    def queue_file(self):
        return self.box.path / "home/.local/state/vramtrack/vramtrack.db.notify.json"

    def test_retried_after_503_and_told_once(self):
        with Receiver([503, 503]) as receiver:
            watch = self.watch(self.LEAK, *self.settings(webhook=receiver.url, retry_seconds=0.05))
            told = [receiver.next() for _ in range(3)]
            _, err = self.end(watch)
        self.assertEqual([t[0] for t in told], [503, 503, 200])
        self.assertEqual(len({t[3]["id"] for t in told}), 1)
        self.assertIn("status 503", err)
        self.assertIn("delivered again", err)
        # The device and its process both raise alarms: it is one leak, reported once.
        self.assertEqual([t[3]["event"] for t in receiver.all() if t[3]["event"] == "raised"], [])

    def test_kept_over_kill_and_restart_and_not_told_twice(self):
        with Receiver([503] * 1000) as receiver:
            settings = self.settings(webhook=receiver.url, retry_seconds=0.05)
            watch = self.watch(self.LEAK, *settings)
            failed = receiver.next()[3]
            self.end(watch, signal.SIGKILL)
            self.assertEqual(stat.S_IMODE(self.queue_file.stat().st_mode), 0o600)
            saved = json.loads(self.queue_file.read_text())
            self.assertEqual([m["id"] for m in saved["messages"]][:1], [failed["id"]])
            receiver.all()
            receiver.statuses.clear()
            # The next watch sees nothing of the kind: everything it delivers was left to it.
            watch = self.watch("", *settings)
            again = receiver.next()
            self.end(watch)
            self.assertEqual((again[0], again[3]["id"]), (200, failed["id"]))
            self.assertEqual(again[3]["text"], failed["text"])
            rest = [t[3] for t in receiver.all()]
            self.assertNotIn("raised", [m["event"] for m in rest])
            # Delivered messages are not sent again. The end of the process may still be waiting: the second watch was ended as
            # soon as it had delivered the first one's leftovers.
            delivered = {failed["id"], *(m["id"] for m in rest)}
            watch = self.watch("", *settings, "--duration", "1s")
            watch.communicate(timeout=LIMIT_S)
            last = [t[3] for t in receiver.all()]
            self.assertLessEqual({m["event"] for m in last}, {"resolved"})
            self.assertEqual(delivered.intersection(m["id"] for m in last), set())

    def test_killed_at_any_moment_the_file_is_whole(self):
        with Receiver([503] * 100000) as receiver:
            for wait in range(6):
                watch = self.watch(self.LEAK, *self.settings(webhook=receiver.url, retry_seconds=0.05))
                for _ in range(1 + wait):
                    receiver.next()
                self.end(watch, signal.SIGKILL)
                receiver.all()
                saved = json.loads(self.queue_file.read_text())
                self.assertEqual(saved["schema"], "vramtrack.outbox.v1")
                self.assertTrue(saved["messages"])

    def test_a_damaged_file_is_put_aside(self):
        self.queue_file.parent.mkdir(parents=True)
        self.queue_file.write_text('{"schema": "vramtrack.outbox.v1", ')
        with Receiver() as receiver:
            watch = self.watch(self.LEAK, *self.settings(webhook=receiver.url))
            self.assertEqual(receiver.next()[3]["event"], "raised")
            _, err = self.end(watch)
        self.assertIn("moved to", err)
        self.assertTrue(self.queue_file.with_name(self.queue_file.name + ".damaged").exists())

    def test_a_second_watch_does_not_tell_again(self):
        with Receiver() as receiver, Receiver() as other:
            first = self.watch(self.LEAK, *self.settings(webhook=receiver.url))
            receiver.next()
            # Distinguished by their receivers: the first one may have more to send meanwhile.
            second = self.watch(self.LEAK, *self.settings(webhook=other.url), "--duration", "3s")
            _, err = second.communicate(timeout=LIMIT_S)
            self.end(first)
            self.assertIn(b"is already sending these alerts", err)
            self.assertEqual(other.all(), [])

    def test_resolved_when_the_process_ends(self):
        with Receiver() as receiver:
            watch = self.watch("process gpu=0 pid=self list=C used=1G+8M to=40\n", *self.settings(webhook=receiver.url))
            events = [receiver.next()[3] for _ in range(1)]
            while events[-1]["event"] != "resolved":
                events.append(receiver.next()[3])
            self.end(watch)
        self.assertEqual(events[0]["event"], "raised")
        self.assertEqual(events[0]["incident"], events[-1]["incident"])

    def test_a_receiver_that_never_answers_delays_no_sample(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            watch = self.watch(self.LEAK, *self.settings(webhook=url, timeout_seconds=30), "--duration", "3s")
            connection, _ = silent.accept()
            out, _ = watch.communicate(timeout=LIMIT_S)
            connection.close()
        polls = int(out.decode().split(" polls")[0].split()[-1])
        self.assertGreaterEqual(polls, 25)


if __name__ == "__main__":
    unittest.main(verbosity=1)
