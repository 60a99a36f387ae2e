"""How a pytest that a test starts finds the plugin."""
import sys
from importlib.metadata import entry_points


def plugin_options():
    """None where the package is installed: its entry point names the plugin, and pytest refuses one that is named twice."""
    found = entry_points(group="pytest11") if sys.version_info >= (3, 10) else entry_points().get("pytest11", ())
    return [] if any(entry.name == "vramtrack" for entry in found) else ["-p", "vramtrack.pytest_plugin"]
