import xml.etree.ElementTree as ElementTree

import pytest

import vramtrack

GIB, MIB = 2**30, 2**20
SVG = "{http://www.w3.org/2000/svg}"


def shapes(verdict):
    root = ElementTree.fromstring(verdict._repr_svg_())
    return root, {element.get("class"): element for element in root.iter() if element.get("class")}


def test_a_leaks_chart_has_trend_band_and_pattern():
    t = list(range(0, 3600, 5))
    verdict = vramtrack.detect(t, [8 * GIB + 2 * MIB * s for s in t], 24 * GIB)
    root, found = shapes(verdict)
    assert {"vt-series", "vt-range", "vt-trend", "vt-eta"} <= set(found)
    assert "LEAK (gradual leak)" in root.get("aria-label") and "out of memory in" in root.get("aria-label")
    text = " ".join(e.text or "" for e in root.iter(SVG + "text"))
    assert "out of memory at 24.0 GiB" in text
    trend = found["vt-trend"]
    assert float(trend.get("y2")) < float(trend.get("y1")), "upwards"
    band = found["vt-eta"]
    assert float(band.get("x")) > float(found["vt-series"].get("points").split()[-1].split(",")[0]), "in the future"


def test_a_steady_chart_has_no_trend():
    verdict = vramtrack.detect(range(600), [5.0 * GIB] * 600, 24 * GIB)
    root, found = shapes(verdict)
    assert "vt-trend" not in found and "vt-eta" not in found and root.get("aria-label").startswith("steady")


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_short_series_are_drawn_or_said(n):
    shapes(vramtrack.detect(range(n), [1e9] * n))


def test_html_escapes_and_holds_no_script():
    verdict = vramtrack.detect(range(600), [8e9 + 1e7 * s for s in range(600)], 24 * GIB).with_growth_per({"step": 8 * MIB})
    html = verdict._repr_html_()
    assert html.startswith("<div") and "<script" not in html and "+8.0 MiB per step" in html
    ElementTree.fromstring(html)
