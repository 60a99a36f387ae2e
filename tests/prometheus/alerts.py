#!/usr/bin/env python3
"""Leaking jobs of several owners, by a `fleet watch`, by an agent, and by both, up to Alertmanager's webhook. alerts.py BINARY

A real Prometheus with the rules of contrib/prometheus, and a real Alertmanager with its configuration there. Each job must become one group with its
owner and a link, whoever exports its GPUs; and a watch that is killed must be reported.
"""
import collections
import datetime
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import dashboards
import yaml
from dashboards import BINARY, MACHINE, Relay, Webhook, fleet_servers
from running import Agent, Sandbox
from scan_data import labels as dcgm_labels, leaking, with_capacity
from servers import Servers, fetch, free_port, needs, quick_alertmanager, quick_config, quick_rules, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWNERS = ("ada", "bob", "eve")
LEAKS = ("GpuMemoryLeak", "GpuOutOfMemorySoon")


def jobs(scheduled=True):
    """{work: (owner, [labels of each GPU])}: six Slurm jobs, the first on two GPUs, and six Deployments; else twelve jobs of which only the owners are known."""
    out = {}
    for i in range(12):
        owner = OWNERS[i % 3]
        if not scheduled:
            out[f"node{i % 2} GPU {i}"] = (owner, [dcgm_labels(f"node{i % 2}", i, user=owner)])
        elif i < 6:
            out[f"job {700 + i}"] = (owner, [dcgm_labels(f"node{i}", gpu, user=owner, hpc_job=str(700 + i)) for gpu in range(2 if i == 0 else 1)])
        else:
            out[f"team-{owner}/serve{i}"] = (owner, [dcgm_labels(f"node{i}", 0, user=owner, exported_namespace=f"team-{owner}",
                                                                 exported_pod=f"serve{i}-7c9d8b6f5-x2x4z", exported_container="main")])
    return out


def machine(slurm=False):
    """A machine with twelve jobs of three owners, each on a GPU; with Slurm, the first is on two."""
    out = 'name = "machine"\nseed = 3\nperiod_s = 5\nduration_s = "2d"\nquantum_bytes = "2MiB"\n'
    gpus = [[i] for i in range(12)]
    if slurm:
        gpus[0].append(12)
    out += '[[device]]\nname = "NVIDIA L40S"\ncapacity_bytes = "400GiB"\nbaseline_bytes = "500MiB"\n' * sum(map(len, gpus))
    for i, devices in enumerate(gpus):
        out += f'[[process]]\nname = "python"\ncommand = "python train.py"\nuser = "{OWNERS[i % 3]}"\ndevices = {devices}\n'
        out += f'slurm_job = "{800 + i}.0"\n' if slurm else ""
        for shape in ('kind = "constant"\n  bytes = "8GiB"', 'kind = "sawtooth"\n  amplitude_bytes = "300MiB"\n  period_s = 42\n  period_spread = 0.2',
                      'kind = "linear"\n  rate_bytes_per_s = "120MiB/min"\n  onset_s = "10min"'):
            out += f"  [[process.shape]]\n  {shape}\n"
    return out


class Fleet:
    """Prometheus, Alertmanager and a webhook, with a place for a watch and one for an agent among the targets."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory(prefix="vramtrack-alerts-")
        test.addCleanup(folder.cleanup)
        self.test, self.folder = test, pathlib.Path(folder.name)
        self.hook = Webhook()
        test.addCleanup(self.hook.close)
        self.servers = Servers(self.folder)
        test.addCleanup(self.servers.__exit__)
        self.relay = Relay()
        test.addCleanup(self.relay.close)
        self.watch_port = free_port()
        quick_rules(self.folder)
        quick_alertmanager(self.folder, self.hook)
        alertmanager = self.servers.alertmanager("alertmanager.yml")
        self.alertmanager = f"http://127.0.0.1:{alertmanager}/api/v2"
        config = quick_config(self.folder, [self.relay.address], alertmanager, labels={"Hostname": "node1"})
        config["global"]["scrape_interval"] = "3s"  # and as long for an answer
        # Jobs of Prometheus are called as their users like.
        config["scrape_configs"][0]["job_name"] = "gpu-agents"
        config["scrape_configs"].append({"job_name": "central", "honor_labels": True,
                                         "static_configs": [{"targets": [f"127.0.0.1:{self.watch_port}"]}]})
        config["storage"] = {"tsdb": {"out_of_order_time_window": "7d"}}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.prometheus = self.servers.prometheus("prometheus.yml", "--web.enable-remote-write-receiver")

    def write(self, gpus):
        remote = fleet_servers()
        writer = remote.Server.__new__(remote.Server)  # one that is already running
        writer.url = self.prometheus.url
        writer.write(with_capacity([(gpu, leaking(i, 4, 230)) for i, gpu in enumerate(gpus)]))

    def watch(self):
        with open(self.folder / "watch.log", "wb") as log:
            process = subprocess.Popen([BINARY, "fleet", "watch", "--url", self.prometheus.url, "--listen", f"127.0.0.1:{self.watch_port}", "--every", "1s",
                                        "--history", "5h", "--only", "job=dcgm"], stdout=subprocess.DEVNULL, stderr=log)
        self.servers.running.append(process)
        until(lambda: fetch(f"http://127.0.0.1:{self.watch_port}/healthz")[0] == 200, 60, "the watch's first pass")
        return process

    def agent(self, machine=MACHINE):
        """Returns {index: UUID} of its GPUs."""
        box = Sandbox(BINARY).__enter__()
        self.test.addCleanup(box.__exit__)
        box.write("machine.toml", machine)
        # Notified of as soon as they are found: by this clock, the usual hour before the end is over in 36 s.
        agent = Agent(box, "--scenario", "machine.toml", "--speed", "100", "--set", "alert.lead-time-minutes=20000", env={"NODE_NAME": "node1"}, simulate=False).__enter__()
        self.test.addCleanup(agent.__exit__)
        self.relay.agent = f"{agent.host}:{agent.port}"
        body = until(lambda: (lambda text: text if "vramtrack_device_info" in text else None)(fetch(f"http://{self.relay.address}/metrics")[1].decode()), 60,
                     "the agent's GPUs")
        return {int(gpu): uuid for uuid, gpu in re.findall(r'vramtrack_device_info\{UUID="([^"]+)",gpu="(\d+)"', body)}

    def groups(self):
        """{work: [alerts]} of the leaks that are firing, as the webhook was told last."""
        last = {}
        for _, message in list(self.hook.heard):
            if message["groupLabels"].get("alertname") in LEAKS:
                last[message["groupKey"]] = message
        out = collections.defaultdict(list)
        for message in last.values():
            for alert in message["alerts"]:
                if alert["status"] == "firing":
                    out[message["groupLabels"].get("work", "")].append(alert)
        # A leak that is reported first and only then found to end soon is in two messages: inhibition withdraws none.
        gpu = lambda alert: (alert["labels"].get("UUID"), alert["labels"].get("Hostname"), alert["labels"].get("gpu"))
        return collections.defaultdict(list, {work: list({gpu(alert): alert for alert in alerts}.values()) for work, alerts in out.items()})

    def until(self, condition, seconds, what):
        """As until(), and a failure shows the groups and what the servers logged."""
        try:
            return until(condition, seconds, what)
        except AssertionError as late:
            groups = {key: [alert["labels"] for alert in alerts] for key, alerts in sorted(self.groups().items())}
            self.test.fail(f"{late}; groups: {json.dumps(groups, indent=1)}\n{self.servers.logs()}")

    def until_groups(self, keys, seconds=120):
        return self.until(lambda: (lambda g: g if set(g) >= set(keys) else None)(self.groups()), seconds, "a group of each job")

    def silence(self, **matchers):
        now = datetime.datetime.now(datetime.timezone.utc)
        body = {"matchers": [{"name": name, "value": value, "isRegex": False, "isEqual": True} for name, value in matchers.items()],
                "startsAt": now.isoformat(), "endsAt": (now + datetime.timedelta(hours=2)).isoformat(), "createdBy": "ada", "comment": "known"}
        status, answer = fetch(f"{self.alertmanager}/silences", body)
        self.test.assertEqual(status, 200, answer)

    def held_back(self, state):
        """The alerts that Alertmanager holds back, by "silencedBy" or "inhibitedBy"."""
        return [alert for alert in json.loads(fetch(f"{self.alertmanager}/alerts")[1]) if alert["status"][state]]

    def until_told(self, name):
        return until(lambda: self.hook.alerts(name), 90, name)[0]


@needs("prometheus", "prometheus-alertmanager")
@unittest.skipUnless(BINARY, "no binary was given")
class Alerts(unittest.TestCase):
    def check_group(self, key, alerts, owner, instance):
        for alert in alerts:
            said = alert["annotations"]
            self.assertEqual(said["owner"], owner, key)
            self.assertEqual(said["link"], f"http://{instance}/", key)
            self.assertIn(key, said["description"])

    def check_example(self, fleet):
        """The message that docs/prometheus.md shows, except for the port and the time that is left."""
        shown = json.loads(re.search(r"```json\n(.*?)```", (ROOT / "docs/prometheus.md").read_text(), re.DOTALL)[1])
        mine = lambda message: message["groupLabels"] == shown["groupLabels"] and len(message["alerts"]) == len(shown["alerts"])
        message = until(lambda: next((m for _, m in list(fleet.hook.heard) if mine(m)), None), 60, "the example")
        text = re.sub(r" in [\dhms ]+\"", ' in 1m"', json.dumps(message).replace(f"127.0.0.1:{fleet.watch_port}", "watch:9837"))
        for key, value in json.loads(re.sub(r" in [\dhms ]+\"", ' in 1m"', json.dumps(shown))).items():
            if key == "alerts":
                each = [{part: {**shown[f"common{part.title()}"], **alert[part]} for part in ("labels", "annotations")} for alert in value]
                got = [{part: alert[part] for part in ("labels", "annotations")} for alert in json.loads(text)["alerts"]]
                self.assertCountEqual(got, each)
            else:
                self.assertEqual(json.loads(text)[key], value, key)

    def test_a_watch_alone_makes_one_group_of_each_job_and_its_end_is_told(self):
        fleet = Fleet(self)
        work = jobs()
        fleet.write([gpu for _, gpus in work.values() for gpu in gpus])
        watch = fleet.watch()
        groups = fleet.until_groups(work)
        self.assertEqual(set(groups), set(work))
        for key, (owner, gpus) in work.items():
            self.check_group(key, groups[key], owner, f"127.0.0.1:{fleet.watch_port}")
            until(lambda k=key, g=gpus: {a["labels"]["UUID"] for a in fleet.groups()[k]} == {one["UUID"] for one in g}, 60, f"each GPU of {key}")
        self.check_example(fleet)
        self.assertEqual(fleet.hook.alerts("VramtrackAbsent"), [], "there is a watch")
        self.assertEqual(fleet.hook.alerts("VramtrackWatchDown"), [])
        watch.kill()
        watch.wait()
        down = fleet.until_told("VramtrackWatchDown")
        self.assertEqual((down["labels"]["instance"], down["labels"]["severity"]), (f"127.0.0.1:{fleet.watch_port}", "critical"))
        self.assertIn("look resolved", down["annotations"]["description"])

    def test_a_watch_makes_one_group_of_each_gpu_of_which_no_job_is_known(self):
        fleet = Fleet(self)
        work = jobs(scheduled=False)
        fleet.write([gpu for _, gpus in work.values() for gpu in gpus])
        fleet.watch()
        groups = fleet.until_groups(work)
        self.assertEqual(set(groups), set(work))
        for key, (owner, _) in work.items():
            self.check_group(key, groups[key], owner, f"127.0.0.1:{fleet.watch_port}")

    def test_an_agent_without_a_scheduler_makes_one_group_of_each_job_alone_and_beside_a_watch(self):
        fleet = Fleet(self)
        uuids = fleet.agent(machine())
        groups = until(lambda: (lambda g: g if len(g) >= 12 else None)(fleet.groups()), 120, "a group of each job")
        self.assertEqual(collections.Counter(alerts[0]["annotations"]["owner"] for alerts in groups.values()), dict.fromkeys(OWNERS, 4))
        for key, alerts in groups.items():
            self.assertRegex(key, r"^node1 python pid \d+$")
            self.check_group(key, alerts, alerts[0]["annotations"]["owner"], fleet.relay.address)
        # The watch sees these GPUs, too, of which the agent counts, and others.
        others = jobs(scheduled=False)
        fleet.write([dict(dcgm_labels("node1", gpu), UUID=uuid) for gpu, uuid in uuids.items()] + [gpu for _, gpus in others.values() for gpu in gpus])
        fleet.watch()
        expected = set(groups) | set(others)
        self.assertEqual(set(fleet.until_groups(expected)), expected)

    def test_a_slurm_job_is_one_group_whoever_sees_its_gpus(self):
        fleet = Fleet(self)
        fleet.agent(machine(slurm=True))
        expected = {f"job {800 + i}": OWNERS[i % 3] for i in range(12)}
        groups = fleet.until_groups(expected)
        self.assertEqual(set(groups), set(expected))
        for key, owner in expected.items():
            self.check_group(key, groups[key], owner, fleet.relay.address)
        fleet.until(lambda: len(fleet.groups()["job 800"]) == 2, 60, "both GPUs of the first")
        fleet.write([dcgm_labels("node9", i, hpc_job=str(800 + i), user=OWNERS[i % 3]) for i in range(3)])
        fleet.watch()
        fleet.until(lambda: [len(fleet.groups()[f"job {800 + i}"]) for i in range(3)] == [3, 2, 2], 120, "the GPUs of both")
        self.assertEqual(set(fleet.groups()), set(expected))

    def test_silences_and_inhibition_hold_for_what_a_watch_says(self):
        fleet = Fleet(self)
        work = jobs()
        fleet.write([gpu for _, gpus in work.values() for gpu in gpus])
        fleet.silence(slurm_job_id="703")
        fleet.silence(namespace="team-ada", deployment="serve6")
        silenced = {"job 703", "team-ada/serve6"}
        watch = fleet.watch()
        groups = fleet.until_groups(set(work) - silenced)
        until(lambda: {a["labels"]["work"] for a in fleet.held_back("silencedBy")} == silenced, 90, "both are silenced")
        self.assertEqual(set(groups) & silenced, set(), "nobody was told of them")
        # As the rules say of a watch that is down: told once, not three times.
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        place = {"instance": "watch:9837", "scope": "fleet", "job": "central"}
        down = [{"labels": {"alertname": name, "severity": severity, **place}, "startsAt": now}
                for name, severity in (("VramtrackWatchDown", "critical"), ("VramtrackWatchLate", "warning"), ("VramtrackWatchBlind", "warning"))]
        self.assertEqual(fetch(f"{fleet.alertmanager}/alerts", down)[0], 200)
        fleet.until_told("VramtrackWatchDown")
        until(lambda: {a["labels"]["alertname"] for a in fleet.held_back("inhibitedBy")} >= {"VramtrackWatchLate", "VramtrackWatchBlind"}, 60, "inhibition")
        self.assertEqual(fleet.hook.alerts("VramtrackWatchLate") + fleet.hook.alerts("VramtrackWatchBlind"), [])
        watch.kill()
        watch.wait()

    def test_of_a_gpu_that_an_agent_and_a_watch_tell_of_the_agent_counts(self):
        fleet = Fleet(self)
        uuids = fleet.agent()
        fleet.write([dict(dcgm_labels("node1", gpu), UUID=uuid) for gpu, uuid in uuids.items() if gpu < 2] + [dcgm_labels("node9", 0, hpc_job="709", user="eve")])
        fleet.watch()
        until(lambda: len(fleet.prometheus.query('vramtrack_verdict{Hostname="node1"} == 1')) >= 4, 120, "both tell of both GPUs")
        expected = {"job 4711": "ada", "train/serve": "web", "job 709": "eve"}
        groups = fleet.until_groups(expected)
        for key, owner in expected.items():
            self.check_group(key, groups[key], owner, f"127.0.0.1:{fleet.watch_port}" if key == "job 709" else fleet.relay.address)
        leaks = fleet.prometheus.query("count by (UUID) (vramtrack:leak_suspect)")
        self.assertEqual({one["value"][1] for one in leaks}, {"1"}, "one of each GPU")
        self.assertEqual(len(leaks), 3)


if __name__ == "__main__":
    del dashboards  # its tests are not these
    unittest.main(verbosity=1)
