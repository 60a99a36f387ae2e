#!/usr/bin/env python3
"""The rules of contrib/prometheus under promtool: well formed, tested, and their tests can fail.

    rules.py [--broken]     --broken: also with each rule broken, which some test must notice
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml
from servers import CONTRIB, ROOT, needs

BROKEN = "--broken" in sys.argv
FILES = ("vramtrack.recording.yml", "vramtrack.alerts.yml", "vramtrack.tests.yml")


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def rules_of(name):
    return [rule for group in yaml.safe_load((CONTRIB / name).read_text())["groups"] for rule in group["rules"]]


class RulesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramtrack-rules-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in FILES:
            shutil.copy(CONTRIB / name, self.folder)


@needs("promtool")
class Rules(RulesTest):
    def test_they_are_well_formed_and_do_what_their_tests_say(self):
        for command in (("check", "rules", *FILES[:2]), ("test", "rules", FILES[2])):
            status, said = run(self.folder, "promtool", *command)
            self.assertEqual(status, 0, said)

    def test_each_alert_says_how_bad_and_what_to_do(self):
        for rule in rules_of(FILES[1]):
            self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"), rule)
            self.assertIn(rule["labels"]["scope"], ("gpu", "node", "fleet"), rule)
            self.assertTrue(rule["annotations"]["summary"] and rule["annotations"]["description"].rstrip().endswith("."), rule)

    def test_each_alert_is_seen_firing_and_quiet(self):
        cases = [c for test in yaml.safe_load((CONTRIB / FILES[2]).read_text())["tests"] for c in test.get("alert_rule_test", [])]
        for rule in rules_of(FILES[1]):
            mine = [bool(c.get("exp_alerts")) for c in cases if c["alertname"] == rule["alert"]]
            self.assertIn(True, mine, f"{rule['alert']} fires in no test")
            self.assertIn(False, mine, f"{rule['alert']} is quiet in no test")

    def test_they_ask_for_metrics_there_are(self):
        known = "".join((ROOT / "docs" / name).read_text() for name in ("METRICS.md", "fleet.md"))
        recorded = {r["record"] for r in rules_of(FILES[0])}
        for rule in rules_of(FILES[0]) + rules_of(FILES[1]):
            for name in re.findall(r"\bvramtrack[_:][a-z_:]+", rule["expr"]):
                self.assertTrue(name in recorded or f"`{name}`" in known, name)


@unittest.skipUnless(BROKEN, "takes minutes: rules.py --broken, a step of make check")
@needs("promtool")
class BrokenRules(RulesTest):
    def test_the_tests_notice_every_rule_that_is_broken(self):
        survived = []
        for name in FILES[:2]:
            document = yaml.safe_load((CONTRIB / name).read_text())
            for rule in (r for g in document["groups"] for r in g["rules"]):
                right = rule["expr"]
                # Never; and, of an alert, always. A recorded series that is never there is missed already.
                for wrong in ("vector(0) > 0", f"({right}) or vector(7)")[:2 if "alert" in rule else 1]:
                    rule["expr"] = wrong
                    (self.folder / name).write_text(yaml.safe_dump(document))
                    if run(self.folder, "promtool", "test", "rules", FILES[2])[0] == 0:
                        survived.append((rule.get("alert") or rule["record"], wrong))
                if rule.get("for"):
                    patience, rule["expr"], rule["for"] = rule["for"], right, "0s"
                    (self.folder / name).write_text(yaml.safe_dump(document))
                    if run(self.folder, "promtool", "test", "rules", FILES[2])[0] == 0:
                        survived.append((rule["alert"], "without its patience"))
                    rule["for"] = patience
                rule["expr"] = right
            shutil.copy(CONTRIB / name, self.folder)
        self.assertEqual(survived, [])


@needs("amtool", group="test")
class Alertmanager(unittest.TestCase):
    CONFIG = str(CONTRIB / "alertmanager.yml")

    def test_the_config_is_well_formed(self):
        status, said = run(CONTRIB, "amtool", "check-config", self.CONFIG)
        self.assertEqual(status, 0, said)

    def test_the_routes(self):
        def receiver(*labels):
            return run(CONTRIB, "amtool", "config", "routes", "test", f"--config.file={self.CONFIG}", *labels)[1].strip()
        self.assertEqual(receiver("alertname=GpuMemoryLeak", "severity=warning", "scope=gpu"), "actuate")
        self.assertEqual(receiver("alertname=GpuNodeUnhealthy", "severity=critical", "scope=node"), "actuate")
        self.assertEqual(receiver("alertname=X", "severity=info", "scope=gpu"), "nobody")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--broken"], verbosity=1)
