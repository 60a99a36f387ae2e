import xml.etree.ElementTree as ElementTree

import pytest

import vramtrack

GIB, MIB = 2**30, 2**20
SVG = "{http://www.w3.org/2000/svg}"


def shapes(verdict):
    root = ElementTree.fromstring(verdict._repr_svg_())
    return root, {element.get("class"): element for element in root.iter() if element.get("class")}


def first_point(element):
    return [float(value) for value in element.get("points").split()[0].split(",")]


def last_point(element):
    return [float(value) for value in element.get("points").split()[-1].split(",")]


def test_a_leaks_chart_has_trend_band_and_pattern():
    t = list(range(0, 3600, 5))
    verdict = vramtrack.detect(t, [8 * GIB + 2 * MIB * s for s in t], 24 * GIB)
    root, found = shapes(verdict)
    assert {"mean", "band", "capacity", "trend", "end"} <= set(found)
    assert root.get("aria-label") == verdict.headline
    assert "LEAK (gradual leak)" in verdict.headline and "out of memory in" in verdict.headline
    assert found["end"].find(SVG + "title").text.startswith("out of memory in ")
    trend = found["trend"]
    assert float(trend.get("y2")) < float(trend.get("y1")), "upwards"
    assert float(found["end"].get("x")) > last_point(found["mean"])[0], "in the future"
    assert [float(trend.get("x1")), float(trend.get("y1"))] == pytest.approx(last_point(found["mean"]), abs=3), "from the last sample on"
    assert float(found["alert"].get("x1")) > first_point(found["mean"])[0]


def test_a_steady_chart_has_no_trend():
    verdict = vramtrack.detect(range(600), [5.0 * GIB] * 600, 24 * GIB)
    root, found = shapes(verdict)
    assert not {"trend", "end", "alert", "onset"} & set(found) and "steady" in root.get("aria-label")


def test_a_gap_is_not_drawn_over():
    times = [*range(600), *range(2000, 2600)]
    root, _ = shapes(vramtrack.detect(times, [5.0 * GIB] * 1200, 24 * GIB))
    assert sum(element.get("class") == "mean" for element in root.iter()) == 2


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_short_series_are_drawn_or_said(n):
    verdict = vramtrack.detect(range(n), [1e9] * n)
    assert (verdict._repr_svg_() is None) == (n < 2)
    assert verdict.because in "".join(ElementTree.fromstring(verdict._repr_html_()).itertext())


def test_html_escapes_and_holds_no_script():
    verdict = vramtrack.detect(range(600), [8e9 + 1e7 * s for s in range(600)], 24 * GIB).with_growth_per({"step": 8 * MIB})
    html = verdict._repr_html_()
    assert html.startswith("<div") and "<script" not in html and "+8.0 MiB per step" in html
    ElementTree.fromstring(html)
    shapes(vramtrack.verdict.replace(verdict, text="<&> \x01\"'"))
