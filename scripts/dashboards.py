#!/usr/bin/env python3
"""Writes the Grafana dashboards of contrib/grafana: dashboards.py [--check]

They are generated rather than drawn, so that a metric looks the same on each of them. --check: exits with 1 if a file differs.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "contrib" / "grafana"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF_HOST = 'cluster=~"$cluster",Hostname=~"$host"'
OF_GPU = OF_HOST + ',UUID=~"$gpu"'
OF_JOB = 'cluster=~"$cluster",slurm_job_id=~"$job",pod=~"$pod"'
GPU = "{{Hostname}} {{gpu}}"
JOIN = "* on (cluster, Hostname, UUID) group_left"
WHO = "(pattern, pid, comm, framework, slurm_job_id, namespace, pod)"
DASHBOARDS = {"fleet": "GPU fleet", "node": "GPU node", "gpu": "GPU", "job": "GPU job", "watch": "GPU fleet watch"}

RED_ABOVE_0 = [("green", None), ("red", 1)]
RED_BELOW_1_H = [("red", None), ("orange", 3600), ("green", 6 * 3600)]
FULL = [("green", None), ("orange", 0.85), ("red", 0.95)]
PLAIN = [("text", None)]
HEALTH = {"0": "healthy", "1": "degraded", "2": "failing"}
SEVERITY = {"0": "ok", "1": "watch", "2": "warning", "3": "critical"}


def target(expr, legend="", ref="A", instant=False, table=False):
    return {"datasource": SOURCE, "expr": expr, "legendFormat": legend, "refId": ref, "instant": instant, "range": not instant,
            "format": "table" if table else "time_series", "editorMode": "code"}


def thresholds(steps):
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps]}


def value_mapping(names):
    colors = ["green", "yellow", "orange", "red"]
    if len(names) == 3:
        colors = ["green", "orange", "red"]
    return [{"type": "value", "options": {value: {"text": name, "color": color, "index": int(value)}
                                          for (value, name), color in zip(names.items(), colors)}}]


def panel(kind, title, targets, width, height, unit="short", description="", steps=PLAIN, **more):
    defaults = {"unit": unit, "thresholds": thresholds(steps)}
    defaults.update(more.pop("defaults", {}))
    return {"title": title, "description": description, "type": kind, "datasource": SOURCE, "targets": targets,
            "gridPos": {"w": width, "h": height}, "fieldConfig": {"defaults": defaults, "overrides": more.pop("overrides", [])},
            "options": {}, **more}


def stat(title, expr, unit="short", steps=PLAIN, description="", names=None, none=None, width=4):
    defaults = {}
    if names:
        defaults["mappings"] = value_mapping(names)
    if none:
        defaults["noValue"] = none
    return panel("stat", title, [target(expr, instant=True)], width, 4, unit, description, steps, defaults=defaults)


def graph(title, *lines, unit="short", description="", width=12, high=None, steps=PLAIN, names=None):
    defaults = {"min": 0} if unit in ("bytes", "percentunit") else {}
    if high is not None:
        defaults["max"] = high
    if names:
        defaults["mappings"] = value_mapping(names)
    targets = [target(expr, legend, chr(ord("A") + i)) for i, (expr, legend) in enumerate(lines)]
    return panel("timeseries", title, targets, width, 8, unit, description, steps, defaults=defaults)


def to(dashboard, **variables):
    """A link from a field to another dashboard: the label's value becomes the variable's value."""
    words = "".join(f"&var-{name}=${{__data.fields.{field}}}" for name, field in variables.items())
    return {"title": f"Open {DASHBOARDS[dashboard]}",
            "url": f"/d/vramtrack-{dashboard}?${{datasource:queryparam}}&${{cluster:queryparam}}&${{__url_time_range}}{words}"}


def table(title, columns, width=24, height=8, description="", hidden=(), links=(), names=None):
    """columns: (heading, expression, unit) each; rows with the same labels are merged."""
    targets = [target(expr, "", chr(ord("A") + i), instant=True, table=True) for i, (_, expr, _) in enumerate(columns)]
    overrides = []
    renamed = {}
    for i, (heading, _, unit) in enumerate(columns):
        value = f"Value #{chr(ord('A') + i)}" if len(columns) > 1 else "Value"
        renamed[value] = heading
        properties = [{"id": "unit", "value": unit}]
        if names and heading in names:
            properties.append({"id": "mappings", "value": value_mapping(names[heading])})
        overrides.append({"matcher": {"id": "byName", "options": heading}, "properties": properties})
    for field, link in links:
        overrides.append({"matcher": {"id": "byName", "options": field}, "properties": [{"id": "links", "value": [link]}]})
    exclude = {name: True for name in ("Time", "__name__", "job", "instance", "detector", *hidden)}
    transformations = ([{"id": "merge", "options": {}}] if len(columns) > 1 else []) + [
        {"id": "organize", "options": {"excludeByName": exclude, "renameByName": renamed, "indexByName": {}}}]
    return panel("table", title, targets, width, height, "short", description, overrides=overrides, transformations=transformations)


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": 24, "h": 1}}


LEAKS_LINKS = (("Hostname", to("node", host="Hostname")), ("UUID", to("gpu", host="Hostname", gpu="UUID")),
               ("slurm_job_id", to("job", job="slurm_job_id")), ("pod", to("job", pod="pod")))


def leaks(of, title="Leaks now"):
    suspect = "vramtrack:leak_suspect{%s}" % of
    return table(title, [
        ("growth", f'vramtrack_growth_bytes_per_second {JOIN} {WHO} {suspect}', "Bps"),
        ("probability", f'vramtrack_confidence_ratio {JOIN} {WHO} {suspect}', "percentunit"),
        ("out of memory in", f'vramtrack_oom_eta_seconds {JOIN} {WHO} {suspect}', "s")],
        description="One row per GPU that leaks, with the process that explains the growth. Without a pid, no visible process explains it.",
        links=LEAKS_LINKS, hidden=("gpu",))


def alerts(title, of):
    """One row per firing alert. vmalert only knows the start of alerts that have a `for`."""
    firing = 'ALERTS{alertstate="firing",%s}' % of
    return table(title, [
        ("firing", f"max without (alertstate) ({firing})", "short"),
        ("since", "ALERTS_FOR_STATE{%s} * 1000 and ignoring (alertstate) %s" % (of, firing), "dateTimeFromNow")],
        hidden=("Value #A", "severity", "scope", "container", "pod_uid"), links=LEAKS_LINKS[:2])


def fleet():
    of = 'cluster=~"$cluster"'
    return [
        stat("GPUs", f"sum(vramtrack:fleet_devices:count{{{of}}})"),
        stat("GPUs that leak", f"sum(vramtrack:fleet_leaking_devices:count{{{of}}})", steps=RED_ABOVE_0),
        stat("First out of memory in", f"min(vramtrack:host_oom_eta:min_seconds{{{of}}})", "s", RED_BELOW_1_H, none="no leak",
             description="The median forecast of the GPU that runs out of memory first."),
        stat("Memory in use", f"sum(vramtrack:fleet_memory_used:bytes{{{of}}}) / sum(vramtrack:fleet_memory_total:bytes{{{of}}})", "percentunit", FULL),
        stat("Held by ended processes", f"sum(vramtrack:fleet_memory_unreleased:bytes{{{of}}})", "bytes", [("green", None), ("red", 1e9)],
             none="unknown", description="Memory that was not released: see GpuMemoryUnreleased."),
        stat("Held by stalled processes", f"sum(vramtrack:fleet_stalled_memory:bytes{{{of}}})", "bytes", [("green", None), ("red", 1e9)]),
        stat("Agents that answer", f'sum(up{{job="vramtrack",{of}}})', width=4),
        stat("Agents that do not answer", f'count(up{{job="vramtrack",{of}}} == 0) or vector(0)', steps=RED_ABOVE_0, width=4),
        stat("Failing GPUs", f"count(vramtrack_gpu_health{{{of}}} == 2) or vector(0)", steps=RED_ABOVE_0),
        stat("Degraded GPUs", f"count(vramtrack_gpu_health{{{of}}} == 1) or vector(0)", steps=[("green", None), ("orange", 1)]),
        stat("Lost GPUs", f"count(vramtrack_device_up{{{of}}} == 0) or vector(0)", steps=RED_ABOVE_0),
        stat("Alerts firing", 'count(ALERTS{alertname=~"Gpu.*|Vramtrack.*",alertstate="firing",cluster=~"$cluster"}) or vector(0)', steps=RED_ABOVE_0),
        leaks(of),
        graph("GPUs that leak", (f"vramtrack:fleet_leaking_devices:count{{{of}}}", "{{cluster}}")),
        graph("Memory", (f"vramtrack:fleet_memory_used:bytes{{{of}}}", "in use {{cluster}}"),
              (f"vramtrack:fleet_memory_total:bytes{{{of}}}", "capacity {{cluster}}"), unit="bytes"),
        graph("Fullest nodes", (f"topk(10, vramtrack:host_memory_used:max_ratio{{{of}}})", "{{Hostname}}"), unit="percentunit", high=1,
              description="Of the fullest GPU of each node."),
        graph("Fastest growing jobs", (f"topk(10, vramtrack:job_growth:bytes_per_second{{{of}}})", "{{slurm_job_id}} {{namespace}}/{{pod}}"), unit="Bps",
              description="Of jobs with an active verdict."),
        table("Nodes", [
            ("leaking GPUs", f"vramtrack:host_leaking_devices:count{{{of}}}", "short"),
            ("GPUs", f"vramtrack:host_devices:count{{{of}}}", "short"),
            ("GPUs that answer", f"vramtrack:host_devices_up:count{{{of}}}", "short"),
            ("fullest GPU", f"vramtrack:host_memory_used:max_ratio{{{of}}}", "percentunit"),
            ("out of memory in", f"vramtrack:host_oom_eta:min_seconds{{{of}}}", "s"),
            ("health", f"vramtrack:host_health:worst{{{of}}}", "short")], height=10, names={"health": HEALTH},
            links=(("Hostname", to("node", host="Hostname")),)),
        alerts("Alerts firing", 'alertname=~"Gpu.*|Vramtrack.*",cluster=~"$cluster"'),
    ]


def node():
    return [
        stat("GPUs", f"sum(vramtrack:host_devices:count{{{OF_HOST}}})"),
        stat("GPUs that answer", f"sum(vramtrack:host_devices_up:count{{{OF_HOST}}})"),
        stat("GPUs that leak", f"sum(vramtrack:host_leaking_devices:count{{{OF_HOST}}})", steps=RED_ABOVE_0),
        stat("First out of memory in", f"min(vramtrack:host_oom_eta:min_seconds{{{OF_HOST}}})", "s", RED_BELOW_1_H, none="no leak"),
        stat("Health", f"max(vramtrack:host_health:worst{{{OF_HOST}}})", names=HEALTH, none="unknown"),
        stat("Memory in use", f"sum(vramtrack:host_memory_used:bytes{{{OF_HOST}}}) / sum(vramtrack:host_memory_total:bytes{{{OF_HOST}}})", "percentunit", FULL),
        leaks(OF_HOST),
        graph("Memory in use", (f"vramtrack_device_memory_used_bytes{{{OF_HOST}}}", GPU), unit="bytes"),
        graph("Share of memory in use", (f"vramtrack:device_memory_used:ratio{{{OF_HOST}}}", GPU), unit="percentunit", high=1),
        graph("Growth", (f"vramtrack_growth_bytes_per_second{{{OF_HOST}}}", GPU), unit="Bps"),
        graph("Time until out of memory", (f"vramtrack_oom_eta_seconds{{{OF_HOST}}}", GPU), unit="s"),
        graph("Utilisation", (f"vramtrack_device_utilisation_ratio{{{OF_HOST}}}", GPU), unit="percentunit", high=1),
        graph("Processes", (f"vramtrack_device_processes{{{OF_HOST}}}", GPU + " all"), (f"vramtrack_device_processes_leaking{{{OF_HOST}}}", GPU + " leaking"),
              (f"vramtrack_device_processes_stalled{{{OF_HOST}}}", GPU + " stalled")),
        graph("Held by no visible process", (f"vramtrack:device_memory_unattributed:bytes{{{OF_HOST}}}", GPU),
              (f"vramtrack_device_memory_unreleased_bytes{{{OF_HOST}}}", GPU + " of ended processes"), unit="bytes"),
        graph("Alerts", (f"vramtrack_alerts_standing{{{OF_HOST}}}", GPU), (f"vramtrack_alerts_silenced{{{OF_HOST}}}", GPU + " silenced")),
        row("Health"),
        table("GPUs", [("name", f"vramtrack_device_info{{{OF_HOST}}}", "short")], description="The hardware of the node.",
              links=(("UUID", to("gpu", host="Hostname", gpu="UUID")),)),
        graph("Temperature", (f"vramtrack_gpu_temperature_celsius{{{OF_HOST}}}", GPU), unit="celsius"),
        graph("Power", (f"vramtrack_gpu_power_watts{{{OF_HOST}}}", GPU), (f"vramtrack_gpu_power_limit_watts{{{OF_HOST}}}", GPU + " limit"), unit="watt"),
        graph("Condition", (f"vramtrack_gpu_health{{{OF_HOST}}}", GPU), names=HEALTH),
        graph("Last XID", (f"vramtrack_gpu_xid_last{{{OF_HOST}}}", GPU), unit="none", description="Empty while no GPU reported an XID error."),
        row("Agent"),
        graph("CPU", (f'rate(process_cpu_seconds_total{{job="vramtrack",{OF_HOST}}}[$__rate_interval])', "{{Hostname}}"), unit="percentunit", width=8),
        graph("Resident memory", (f'process_resident_memory_bytes{{job="vramtrack",{OF_HOST}}}', "{{Hostname}}"), unit="bytes", width=8),
        graph("Late polls", (f"rate(vramtrack_late_polls_total{{{OF_HOST}}}[$__rate_interval]) / rate(vramtrack_polls_total{{{OF_HOST}}}[$__rate_interval])",
                             "{{Hostname}}"), unit="percentunit", width=8),
    ]


def gpu():
    return [
        stat("Severity", f"max(vramtrack_severity{{{OF_GPU}}})", names=SEVERITY),
        stat("Probability of a leak", f"max(vramtrack_confidence_ratio{{{OF_GPU}}})", "percentunit", [("green", None), ("orange", 0.5), ("red", 0.9)],
             none="too short"),
        stat("Growth", f"max(vramtrack_growth_bytes_per_second{{{OF_GPU}}})", "Bps", none="too short"),
        stat("Out of memory in", f"min(vramtrack_oom_eta_seconds{{{OF_GPU}}})", "s", RED_BELOW_1_H, none="not predicted"),
        stat("Memory in use", f"max(vramtrack:device_memory_used:ratio{{{OF_GPU}}})", "percentunit", FULL),
        stat("Condition", f"max(vramtrack_gpu_health{{{OF_GPU}}})", names=HEALTH, none="unknown"),
        leaks(OF_GPU, "Verdict and suspect"),
        graph("Memory", (f"vramtrack_device_memory_used_bytes{{{OF_GPU}}}", GPU + " in use"), (f"vramtrack_device_memory_total_bytes{{{OF_GPU}}}", GPU + " capacity"),
              (f"vramtrack_device_memory_peak_bytes{{{OF_GPU}}}", GPU + " peak"), unit="bytes", width=24),
        graph("Who holds it", (f"vramtrack_device_processes_memory_bytes{{{OF_GPU}}}", GPU + " processes"),
              (f"vramtrack_device_memory_unattributed_bytes{{{OF_GPU}}}", GPU + " no visible process"),
              (f"vramtrack_device_memory_unreleased_bytes{{{OF_GPU}}}", GPU + " ended processes"),
              (f"vramtrack_device_stalled_memory_bytes{{{OF_GPU}}}", GPU + " stalled processes"), unit="bytes"),
        graph("Verdict", (f"vramtrack_verdict{{{OF_GPU}}}", GPU + " {{pattern}}"), high=1),
        graph("Growth", (f"vramtrack_growth_bytes_per_second{{{OF_GPU}}}", GPU), (f"vramtrack_growth_low_bytes_per_second{{{OF_GPU}}}", GPU + " 10 %"),
              (f"vramtrack_growth_high_bytes_per_second{{{OF_GPU}}}", GPU + " 90 %"), unit="Bps"),
        graph("Time until out of memory", (f"vramtrack_oom_eta_seconds{{{OF_GPU}}}", GPU), (f"vramtrack_oom_eta_low_seconds{{{OF_GPU}}}", GPU + " 10 %"),
              (f"vramtrack_oom_eta_high_seconds{{{OF_GPU}}}", GPU + " 90 %"), unit="s"),
        graph("Probability and straightness", (f"vramtrack_confidence_ratio{{{OF_GPU}}}", GPU + " probability"),
              (f"vramtrack_r_squared_ratio{{{OF_GPU}}}", GPU + " R²"), unit="percentunit", high=1),
        graph("Utilisation", (f"vramtrack_device_utilisation_ratio{{{OF_GPU}}}", GPU), (f"vramtrack_device_memory_utilisation_ratio{{{OF_GPU}}}", GPU + " memory"),
              unit="percentunit", high=1),
        graph("Processes", (f"vramtrack_device_processes{{{OF_GPU}}}", GPU), (f"vramtrack_device_processes_leaking{{{OF_GPU}}}", GPU + " leaking"),
              (f"vramtrack_device_processes_stalled{{{OF_GPU}}}", GPU + " stalled")),
        graph("Driver's reserve", (f"vramtrack_device_memory_reserved_bytes{{{OF_GPU}}}", GPU), unit="bytes"),
        row("Health"),
        graph("Temperature", (f"vramtrack_gpu_temperature_celsius{{{OF_GPU}}}", GPU), unit="celsius", width=8),
        graph("Power", (f"vramtrack_gpu_power_watts{{{OF_GPU}}}", GPU), (f"vramtrack_gpu_power_limit_watts{{{OF_GPU}}}", GPU + " limit"), unit="watt", width=8),
        graph("Throttled", (f"vramtrack_gpu_throttled{{{OF_GPU}}}", GPU + " {{reason}}"), high=1, width=8),
        graph("ECC errors", (f"vramtrack_gpu_ecc_errors_total{{{OF_GPU}}}", GPU + " {{kind}}"), width=8),
        graph("Replaced rows", (f"vramtrack_gpu_remapped_rows{{{OF_GPU}}}", GPU), width=8),
        graph("Last XID", (f"vramtrack_gpu_xid_last{{{OF_GPU}}}", GPU), unit="none", width=8, description="Empty while the GPU reported no XID error."),
    ]


def job():
    suspect = f"(vramtrack:leak_suspect{{{OF_JOB},slurm_job_id!=\"\"}} or vramtrack:leak_suspect{{{OF_JOB},pod!=\"\"}})"
    labels = "(slurm_job_id, namespace, pod)"
    name = "{{slurm_job_id}} {{namespace}}/{{pod}}"

    def device(metric):
        return f"{metric} {JOIN} {labels} {suspect}"
    return [
        stat("Leaking jobs", f"count(vramtrack:job_leaking_devices:count{{{OF_JOB}}}) or vector(0)", steps=RED_ABOVE_0, width=6,
             description="A job is here while a verdict stands on one of its GPUs: no other metric contains a job."),
        stat("Leaking GPUs", f"sum(vramtrack:job_leaking_devices:count{{{OF_JOB}}})", steps=RED_ABOVE_0, none="0", width=6),
        stat("Growth", f"sum(vramtrack:job_growth:bytes_per_second{{{OF_JOB}}})", "Bps", none="no leak", width=6),
        stat("First out of memory in", f"min(vramtrack:job_oom_eta:min_seconds{{{OF_JOB}}})", "s", RED_BELOW_1_H, none="no leak", width=6),
        leaks(OF_JOB + ',pid!=""', "GPUs and suspects"),
        graph("Memory of its GPUs", (device("vramtrack_device_memory_used_bytes"), name + " on " + GPU), unit="bytes",
              description="While the verdict stands. The node's dashboard has the time before it."),
        graph("Memory in all", (f"vramtrack:job_memory_used:bytes{{{OF_JOB}}}", name), unit="bytes"),
        graph("Growth of its GPUs", (device("vramtrack_growth_bytes_per_second"), name + " on " + GPU), unit="Bps"),
        graph("Time until out of memory", (device("vramtrack_oom_eta_seconds"), name + " on " + GPU), unit="s"),
        graph("Probability of a leak", (device("vramtrack_confidence_ratio"), name + " on " + GPU), unit="percentunit", high=1),
        graph("Utilisation of its GPUs", (device("vramtrack_device_utilisation_ratio"), name + " on " + GPU), unit="percentunit", high=1),
        alerts("Its alerts", 'alertname=~"Gpu.*",%s,pid!=""' % OF_JOB),
    ]


def watch():
    of = 'cluster=~"$cluster"'

    def of_leak(metric):
        # An agent exports the same metrics for its own GPUs.
        return f"max without (detector) ({metric}{{{of}}}) and on (cluster, Hostname, UUID) vramtrack_fleet_leaking_used_bytes{{{of}}}"
    return [
        stat("GPUs", f"sum(vramtrack_fleet_gpus{{{of}}})"),
        stat("Machines", f"sum(vramtrack_fleet_machines{{{of}}})"),
        stat("GPUs that leak", f"sum(vramtrack_fleet_leaking_gpus{{{of}}})", steps=RED_ABOVE_0),
        stat("Jobs that leak", f"sum(vramtrack_fleet_leaking_jobs{{{of}}})", steps=RED_ABOVE_0),
        stat("Suspected GPUs", f"sum(vramtrack_fleet_suspected_gpus{{{of}}})", steps=[("green", None), ("yellow", 1)],
             description="No alert is active for them."),
        stat("Work at risk", f"sum(vramtrack_fleet_at_risk_gpu_seconds{{{of}}})", "s", description="GPU time that a crash of the leaking jobs would lose."),
        stat("Machines not read", f"sum(vramtrack_fleet_unread_machines{{{of}}})", steps=RED_ABOVE_0,
             description="In the last pass: see VramtrackWatchBlind."),
        stat("Age of the last pass", f"max(time() - vramtrack_fleet_pass_timestamp_seconds{{{of}}})", "s", [("green", None), ("orange", 120), ("red", 600)],
             description="See VramtrackWatchLate."),
        stat("Failed passes", f"sum(increase(vramtrack_fleet_failed_passes_total{{{of}}}[1h]))", steps=[("green", None), ("orange", 1)],
             description="In the last hour: the server could not be asked."),
        table("Leaks", [
            ("growth", of_leak("vramtrack_growth_bytes_per_second"), "Bps"),
            ("used", f"vramtrack_fleet_leaking_used_bytes{{{of}}}", "bytes"),
            ("probability", of_leak("vramtrack_confidence_ratio"), "percentunit"),
            ("out of memory in", of_leak("vramtrack_oom_eta_seconds"), "s")],
            description="One row per GPU that the watch says leaks, and who used it when the leak began. GPUs with an agent are on the fleet dashboard.",
            hidden=("gpu",), links=(("slurm_job_id", to("job", job="slurm_job_id")), ("pod", to("job", pod="pod")))),
        graph("GPUs that leak", (f"vramtrack_fleet_leaking_gpus{{{of}}}", "leak {{instance}}"), (f"vramtrack_fleet_suspected_gpus{{{of}}}", "suspected {{instance}}")),
        graph("Time of a pass", (f"vramtrack_fleet_pass_duration_seconds{{{of}}}", "took {{instance}}"),
              (f"vramtrack_fleet_pass_interval_seconds{{{of}}}", "every {{instance}}"), unit="s"),
        graph("Samples read a second", (f"rate(vramtrack_fleet_samples_total{{{of}}}[$__rate_interval])", "{{instance}}")),
        graph("Machines", (f"vramtrack_fleet_machines{{{of}}}", "judged {{instance}}"), (f"vramtrack_fleet_unread_machines{{{of}}}", "not read {{instance}}")),
    ]


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": "variable"},
            "multi": True, "includeAll": True, "allValue": ".*", "refresh": 2, "sort": 1, "current": {"text": ["All"], "value": ["$__all"]}}


VARIABLES = {
    "cluster": variable("cluster", "Cluster", 'label_values({__name__=~"vramtrack_device_up|vramtrack_fleet_gpus"}, cluster)'),
    "host": variable("host", "Node", 'label_values(vramtrack_device_up{cluster=~"$cluster"}, Hostname)'),
    "gpu": variable("gpu", "GPU", f"label_values(vramtrack_device_up{{{OF_HOST}}}, UUID)"),
    "job": variable("job", "Slurm job", 'label_values(vramtrack:leak_suspect{cluster=~"$cluster"}, slurm_job_id)'),
    "pod": variable("pod", "Pod", 'label_values(vramtrack:leak_suspect{cluster=~"$cluster"}, pod)'),
}


def placed(panels):
    """Places the panels from left to right, and starts a new line if one does not fit."""
    x = y = height = 0
    for number, one in enumerate(panels, 1):
        grid = one["gridPos"]
        if x + grid["w"] > 24:
            x, y, height = 0, y + height, 0
        grid.update(x=x, y=y)
        one["id"] = number
        x, height = x + grid["w"], max(height, grid["h"])
    return panels


def dashboard(name, panels, variables, description):
    others = [{"type": "link", "title": DASHBOARDS[other], "icon": "dashboard", "tooltip": "", "tags": [], "asDropdown": False, "targetBlank": False,
               "includeVars": False, "keepTime": True, "url": f"/d/vramtrack-{other}?${{datasource:queryparam}}&${{cluster:queryparam}}"} for other in DASHBOARDS if other != name]
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}
    leak_changes = {"name": "Verdicts", "datasource": SOURCE, "enable": True, "iconColor": "red",
                    "titleFormat": "GPU {{gpu}} of {{Hostname}}: verdict changed",
                    "target": {"refId": "verdicts", "interval": "30s",
                               "expr": 'changes(vramtrack:leaking{cluster=~"$cluster"%s}[1m]) > 0' % (',Hostname=~"$host"' if "host" in variables else "")}}
    return {"uid": f"vramtrack-{name}", "title": f"vramtrack: {DASHBOARDS[name]}", "description": description, "tags": ["gpu", "vramtrack"], "schemaVersion": 38,
            "version": 1, "editable": True, "graphTooltip": 1, "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
            "links": others, "templating": {"list": [source] + [VARIABLES[v] for v in variables]}, "annotations": {"list": [leak_changes]},
            "panels": placed(panels)}


def all_files():
    made = {
        "fleet": dashboard("fleet", fleet(), ["cluster"], "Which GPUs of the fleet leak, whose they are, and which nodes need a hand."),
        "node": dashboard("node", node(), ["cluster", "host"], "The GPUs, the health and the agent of one node."),
        "gpu": dashboard("gpu", gpu(), ["cluster", "host", "gpu"], "One GPU: its verdict, who holds its memory, its health."),
        "watch": dashboard("watch", watch(), ["cluster"], "What a fleet watch finds on machines without an agent, and whether it can see them."),
        "job": dashboard("job", job(), ["cluster", "job", "pod"], "The GPUs of a Slurm job or a pod while a verdict stands on one of them."),
    }
    return {FOLDER / f"{name}.json": json.dumps(one, indent=1, ensure_ascii=False) + "\n" for name, one in made.items()}


def main():
    stale = [path for path, text in all_files().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} differs from what scripts/dashboards.py writes; run it")
        return 1 if stale else 0
    for path in stale:
        path.write_text(all_files()[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
