"""A real etcd, kube-apiserver and kube-controller-manager on loopback. There is no kubelet and no scheduler: nothing runs in the pods.

The controller-manager runs the controllers that eviction depends on: disruption (the status of budgets), replicaset (another pod),
serviceaccount and namespace. Pods and nodes are made by hand, and so is what a kubelet would say of them.
"""
import base64
import http.client
import json
import socket
import ssl
import subprocess
import time

ADMIN = "admin-of-the-test"
ISSUER = "https://kubernetes.default.svc"


def until(what, ask, seconds=60):
    """The first answer that is true; it fails after this many seconds."""
    end = time.monotonic() + seconds
    while True:
        if answer := ask():
            return answer
        assert time.monotonic() < end, f"no {what} after {seconds} s"
        time.sleep(0.05)  # an interval of asking, not a duration that anything depends on


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def certificates(folder):
    """A certificate of 127.0.0.1 and its authority: ca.crt, server.crt, server.key."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=authority of the test", "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", *curve, "-subj", "/CN=kube-apiserver", "-keyout", "server.key", "-out", "server.csr")
    (folder / "server.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "server.ext",
            "-out", "server.crt")


class Cluster:
    """`programs`: the folder of etcd, kube-apiserver, kube-controller-manager and kubectl; without `controllers`, of the first two."""

    def __init__(self, folder, programs, controllers=True):
        self.folder, self.programs, self.controllers, self.running = folder, programs, controllers, {}
        certificates(folder)
        subprocess.run(["openssl", "genrsa", "-out", "accounts.key", "2048"], cwd=folder, check=True, capture_output=True)
        (folder / "tokens.csv").write_text(f'{ADMIN},admin,admin,"system:masters"\n')
        self.port, etcd, peer = free_ports(3)
        self.commands = {
            "etcd": [f"--data-dir={folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}",
                     f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                     f"--initial-cluster=default=http://127.0.0.1:{peer}"],
            "kube-apiserver": [f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                               f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key", f"--cert-dir={folder}",
                               f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC", "--endpoint-reconciler-type=none",
                               "--allow-privileged=true",  # as kubeadm sets it; the container that reads the kernel log needs it
                               f"--service-account-key-file={folder}/accounts.key", f"--service-account-signing-key-file={folder}/accounts.key",
                               f"--service-account-issuer={ISSUER}", f"--api-audiences={ISSUER}", "--service-cluster-ip-range=10.0.0.0/24"],
            "kube-controller-manager": [f"--kubeconfig={folder}/kubeconfig", "--controllers=disruption,replicaset,serviceaccount,namespace",
                                        "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={folder}"],
        }
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": f"{folder}/ca.crt"}}],
            "users": [{"name": "admin", "user": {"token": ADMIN}}]}))
        self.context = ssl.create_default_context(cafile=str(folder / "ca.crt"))

    def __enter__(self):
        try:
            self.start("etcd")
            self.start("kube-apiserver")
            self.version = self.get("/version")["gitVersion"]
            if int(self.get("/version")["minor"].rstrip("+")) < 24:
                self.commands["kube-controller-manager"].append("--port=0")  # its port without TLS, which later ones do not have
            if self.controllers:
                self.start("kube-controller-manager")
            self.budgets = "/apis/" + self.get("/apis/policy")["preferredVersion"]["groupVersion"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.running)):
            self.stop(name)

    def start(self, name):
        with open(self.folder / f"{name}.log", "a") as log:
            self.running[name] = subprocess.Popen([self.programs / name, *self.commands[name]], stdout=log, stderr=log, cwd=self.folder)
        if name == "kube-apiserver":
            until("kube-apiserver", self.is_ready, 120)

    def stop(self, name, kills=False):
        process = self.running.pop(name)
        process.kill() if kills else process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def is_ready(self):
        process = self.running["kube-apiserver"]
        log = (self.folder / "kube-apiserver.log").read_text()[-2000:]
        assert process.poll() is None, f"kube-apiserver has ended: {log}"
        try:
            # The roles that a server makes for itself come after it listens.
            return self.ask("GET", "/readyz")[0] == 200 and self.ask("GET", "/api/v1/namespaces/default")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None, kind="application/json", token=ADMIN):
        """One request: (status, document)."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": "Bearer " + token, "Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else text
        finally:
            connection.close()

    def must(self, method, path, body=None, **more):
        status, document = self.ask(method, path, body, **more)
        assert status in (200, 201, 202), f"{method} {path}: {status}: {document}"
        return document

    def get(self, path):
        return self.must("GET", path)

    def patch(self, path, body):
        return self.must("PATCH", path, body, kind="application/merge-patch+json")

    def apply(self, documents):
        """kubectl apply, with validation on both sides."""
        done = subprocess.run([self.programs / "kubectl", "--kubeconfig", self.folder / "kubeconfig", "apply", "-f", "-"], input=documents, text=True,
                              capture_output=True, timeout=120, env={"HOME": str(self.folder)})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, space, account):
        """A token as a pod gets it: bound to the service account, for an hour."""
        made = self.must("POST", f"/api/v1/namespaces/{space}/serviceaccounts/{account}/token",
                         {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})["status"]["token"]
        claims = json.loads(base64.urlsafe_b64decode(made.split(".")[1] + "=="))
        assert claims["sub"] == f"system:serviceaccount:{space}:{account}", claims
        return made
