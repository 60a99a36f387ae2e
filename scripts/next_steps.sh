#!/bin/sh
# Prints what to do with a newly built binary.
cat <<'END'

vramtrack is build/release/vramtrack. Next:
  build/release/vramtrack top           the GPUs of this machine in the terminal
  build/release/vramtrack analyze FILE  a verdict from a recorded nvidia-smi log
END
if [ -L build/release/vramtrack ]; then
  echo "  make build                            adds the other commands: the agent and its dashboard, the probe, fleets"
else
  echo "  build/release/vramtrack agent         the dashboard and /metrics, on http://127.0.0.1:9474"
fi
cat <<'END'
  make install                          installs it under /usr/local; make deb makes a package
  make test                             builds and runs the tests
END
