"""The programs of tests/cli/orphans.py: what starts workers, what adopts them, and what they do. python family.py CONFIG, which is JSON:

    what      the program: a function of this file
    roll      a file in which each process enters its tree, its role and its pid
    tree      the number of its tree
"""
import ctypes
import json
import mmap
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

SUBREAPER, NAME = 36, 15  # of prctl(2)
LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option, value):
    LIBC.prctl(option, value, 0, 0, 0)


def enter(c, role):
    """As the mount of /proc counts, whatever pid namespace this is in."""
    if pathlib.Path(c["marker"]).exists():
        role = "next-" + role
    roll = os.open(c["roll"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
    os.write(roll, f"{c['tree']} {role} {os.readlink('/proc/self')}\n".encode())
    os.close(roll)


def _compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def compute_in_turns(_):
    while True:
        _compute(0.04)
        time.sleep(0.16)


def spin_for_ever(_):
    while True:
        _compute(1)


def write_a_log(c):
    with open(c["roll"] + "-log", "a", encoding="utf-8") as log:
        while True:
            print(time.time(), file=log, flush=True)
            time.sleep(0.5)


def follow_a_file(c):
    with open(c["roll"] + "-requests", "a+b", buffering=0) as requests:
        while not requests.read():
            time.sleep(0.5)


def look_into_a_folder(c):
    while not any(name.endswith(".request") for name in os.listdir(os.path.dirname(c["roll"]))):
        time.sleep(1)


def wait_for_a_compiler(_):
    subprocess.run([sys.executable, "-c", "while True: pass"])


def fill_a_mapping(_):
    with mmap.mmap(-1, 1 << 30) as memory:
        for page in range(0, 1 << 30, 1 << 12):
            memory[page] = 1
            time.sleep(0.01)


WORK = {work.__name__: work for work in (compute_in_turns, spin_for_ever, write_a_log, follow_a_file, look_into_a_folder, wait_for_a_compiler, fill_a_mapping)}


def rest(c):
    """What a worker does whose program is gone or has no work for it; or, if its activity is of WORK, what goes on without one."""
    activity = c.get("activity", "sleep")
    if activity in WORK:
        WORK[activity](c)
    elif activity == "spin":
        end = time.monotonic() + 300
        while time.monotonic() < end:
            for _ in range(1000):
                pass
            time.sleep(0.05)
    elif activity == "event":
        threading.Event().wait()
    elif activity == "poll":
        while True:
            time.sleep(0.2)
    while True:
        time.sleep(600)


def run_and_exit(c):
    """The program continues until it is told to end, or is killed."""
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
    while True:
        if c.get("program") == "waits":
            signal.pause()
        time.sleep(0.5)


# Workers


def work(c, role, *_kept):
    enter(c, role)
    if c.get("title"):
        prctl(NAME, c["title"].encode())
    if c.get("shell"):
        subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
    rest(c)


def take(c, role, queue):
    enter(c, role)
    queue.get()


def answer(c, role, end):
    enter(c, role)
    end.recv()


def watch(c, role, event):
    enter(c, role)
    event.wait()


def visit(c, role, port):
    end = socket.create_connection(("127.0.0.1", port))
    enter(c, role)
    end.recv(1)


def detach(c, role):
    """A worker that leaves the session of its program, to outlive it."""
    os.setsid()
    work(c, role)


def work_with_own_workers(c, role):
    start(c, work, 1, "either")
    enter(c, role)
    rest(c)


def start(c, target, count, role, *passed):
    context = multiprocessing.get_context(c["start"])
    out = [context.Process(target=target, args=(c, role, *passed), daemon=c.get("daemonic", False)) for _ in range(count)]
    for one in out:
        one.start()
    return out


# Programs: they add themselves as "program"


def workers(c):
    channel = c.get("channel")
    context = multiprocessing.get_context(c["start"])
    kept = []
    for _ in range(c["workers"]):
        if channel == "queue":
            kept.append(context.Queue())
            kept += start(c, take, 1, "worker", kept[-1])
        elif channel == "duplex":
            kept += context.Pipe()
            kept += start(c, answer, 1, "worker", kept[-1])
        else:
            kept += start(c, work, 1, "worker")
    if c.get("late_session"):
        os.setsid()
    if c.get("closes"):
        os.closerange(3, 1024)
    enter(c, "program")
    run_and_exit(c)


def _task(c):
    work(c, "worker")


def pool(c):
    context = multiprocessing.get_context(c["start"])
    with context.Pool(c["workers"]) as of:
        of.map_async(_task, [c] * c["workers"], chunksize=1)
        enter(c, "program")
        run_and_exit(c)


def executor(c):
    from concurrent.futures import ProcessPoolExecutor
    of = ProcessPoolExecutor(c["workers"], mp_context=multiprocessing.get_context(c["start"]))
    kept = [of.submit(_task, c) for _ in range(c["workers"])]
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def nested(c):
    kept = start({**c, "daemonic": False}, work_with_own_workers, c["workers"], "worker")
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def _middle(c, *passed):
    target = {"queue": take, "event": watch, "tcp": visit, None: work}[c.get("channel")]
    kept = start({**c, "daemonic": False}, target, 1, "worker", *passed)
    enter(c, "middle")
    run_and_exit({**c, "kept": kept})


def middle(c):
    """A program that lives, one of its workers that is killed, and whose worker still has work from the program, or has not."""
    context = multiprocessing.get_context(c["start"])
    if c.get("adopts"):
        prctl(SUBREAPER, 1)
    server = socket.create_server(("127.0.0.1", 0)) if c.get("channel") == "tcp" else None
    passed = {"queue": lambda: [context.Queue()], "event": lambda: [context.Event()], "tcp": lambda: [server.getsockname()[1]], None: lambda: []}[c.get("channel")]()
    kept = [context.Process(target=_middle, args=({**c, "daemonic": False}, *passed))]
    kept[0].start()
    if server:
        passed.append(server.accept())
    enter(c, "program")
    run_and_exit({**c, "kept": (kept, passed)})


def closed(c):
    """A program that closes all that it has open, as some do to become a daemon, and still waits for its workers."""
    kept = start(c, work, c["workers"], "worker")
    os.closerange(3, 1024)
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def executed(c):
    """A program that becomes another one, which waits for its workers."""
    start(c, work, c["workers"], "worker")
    enter(c, "program")
    os.execv(sys.executable, [sys.executable, "-c", "import os, time\nfor _ in range(600): time.sleep(1)"])


def shell(c):
    """A shell that gives its program pipes whose other ends have ended since."""
    own = shlex.join([sys.executable, sys.argv[0], json.dumps({**c, "what": "service", "role": "worker", "tree": c["tree"]})])
    subprocess.Popen(["bash", "-c", f"{own} --to >(head -c0) --from <(true); true"])
    enter(c, "program")
    run_and_exit(c)


def detached(c):
    kept = start({**c, "daemonic": False}, detach, c["workers"], "worker")
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def late_daemon(c):
    """A program that starts workers, then continues as a daemon of which they still have their work."""
    queue = multiprocessing.get_context("fork").Queue()
    at_work = [take, queue] if c.get("channel") != "sentinel" else [work]
    kept = start({**c, "daemonic": False}, at_work[0], c["workers"], "worker", *at_work[1:])
    if _daemonize({**c, "closes": False}):
        enter(c, "daemon")
        if c.get("channel") == "sentinel":
            multiprocessing.connection.wait([one.sentinel for one in kept])
        while True:
            time.sleep(600)
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def _forkserver_pid():
    from multiprocessing import forkserver
    return forkserver._forkserver._forkserver_pid


def without_its_forkserver(c):
    kept = start({**c, "start": "forkserver"}, work, c["workers"], "worker")
    with open(c["roll"], "a", encoding="utf-8") as roll:  # not for pid namespaces
        roll.write(f"{c['tree']} middle {_forkserver_pid()}\n")
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def _map_torch():
    """What makes it a program with PyTorch in it, to whoever reads its mappings."""
    folder = pathlib.Path(sys.argv[0]).parent
    with open(folder / "libtorch_cpu.so", "rb") as f:
        return mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)


def launcher(c):
    """As torchrun does it: the store in the launcher, each rank in its own session, its job in its environment. With `resets` the launcher leaves
    requests unread when it ends, so that the kernel resets the connections; with `peers` the ranks share memory, as NCCL's do."""
    kept = [_map_torch()]
    store = socket.create_server(("127.0.0.1", 0))
    shared = os.memfd_create("nccl", 0)
    os.ftruncate(shared, 4096)
    passed = [shared] if c.get("peers") else []
    threading.Thread(target=lambda: [kept.append(store.accept()) for _ in range(99)], daemon=True).start()
    for rank in range(c["workers"]):
        job = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": c["workers"], "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store.getsockname()[1],
               "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_USE_AGENT_STORE": "True"}
        kept.append(subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "rank", "shared": passed})], env={**os.environ, **{k: str(v) for k, v in job.items()}},
                                     start_new_session=c.get("own_sessions", True), pass_fds=passed))
    os.close(shared)
    enter(c, "program")
    run_and_exit(c)


def rank(c):
    kept = [_map_torch(), socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))]
    if c.get("resets"):
        kept[-1].send(b"x")
    for shared in c.get("shared", []):
        kept.append(mmap.mmap(shared, 4096))
        os.close(shared)
    if c.get("loaders"):
        kept += start(c, work, 1, "either")
    if c.get("meshed"):  # like those of Gloo and NCCL
        kept.append(socket.create_server(("127.0.0.1", 0)))
        ports, own = pathlib.Path(f"{c['roll']}-ports-{c['tree']}"), kept[-1].getsockname()[1]
        _enter_port(ports, own)
        kept += _connected_to_others(ports, own, c["workers"])
    leave(c)
    enter(c, "worker")
    rest({**c, "kept": kept})


def _enter_port(ports, own):
    with open(ports, "a", encoding="utf-8") as f:
        f.write(f"{own}\n")


def _connected_to_others(ports, own, count):
    """Connections to all others, once `count` have entered their ports in a file."""
    while len(ports.read_text().split()) < count:
        time.sleep(0.01)
    return [socket.create_connection(("127.0.0.1", int(port))) for port in ports.read_text().split() if int(port) != own]


def wrapped_ranks(c):
    """A launcher that lives, a shell between it and each rank, and the store in the first rank or in the launcher."""
    kept = [_map_torch()]
    store = socket.create_server(("127.0.0.1", 0))
    port = store.getsockname()[1]
    if c["own_store"]:
        threading.Thread(target=lambda: [kept.append(store.accept()) for _ in range(99)], daemon=True).start()
    else:
        os.set_inheritable(store.fileno(), True)
    for rank in range(c["workers"]):
        job = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": c["workers"], "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "none",
               "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_USE_AGENT_STORE": str(c["own_store"])}
        passed = [store.fileno()] if rank == 0 and not c["own_store"] else []
        one = {**c, "what": "rank_with_store" if passed else "rank", "store": store.fileno()}
        kept.append(subprocess.Popen(["sh", "-c", '"$@"; true', "sh", sys.executable, sys.argv[0], json.dumps(one)], env={**os.environ, **{k: str(v) for k, v in job.items()}},
                                     start_new_session=True, pass_fds=passed))
    if not c["own_store"]:
        store.close()
    enter(c, "program")
    run_and_exit(c)


def rank_with_store(c):
    store, kept = socket.socket(fileno=c["store"]), []
    threading.Thread(target=lambda: [kept.append(store.accept()) for _ in range(99)], daemon=True).start()
    rank(c)


def leave(c):
    """Leaves a daemon behind: a separate program, or a fork with all that is open here."""
    if c.get("leaves") == "fork" and (_daemonize(c) if c["daemonic"] else not os.fork()):
        if not c["daemonic"]:
            os.setsid()
        service({**c, "role": "daemon"})
    if c.get("leaves") == "program":
        subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "service", "role": "daemon"})], start_new_session=True)
    if c.get("leaves") == "evaluator":  # with PyTorch, the variables for its rank, and a connection that was reset
        subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "evaluator", "role": "daemon"})], start_new_session=True)


def evaluator(c):
    kept = [_map_torch(), socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))] if c.get("asks") else [_map_torch()]
    end, other = socket.create_server(("127.0.0.1", 0)), socket.socket()
    other.connect(end.getsockname())
    accepted, _ = end.accept()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    accepted.close()
    end.close()
    service({**c, "kept": (kept, other)})


def ray_start(c):
    """`ray start`: the raylet continues as a daemon, with its workers."""
    subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "raylet", "as": "daemon", "of_worker": "kept"})], start_new_session=True)
    enter(c, "program")
    run_and_exit(c)


def raylet(c):
    """Its workers listen where `listens` says: on a port of Ray's, as after `ray start`, or on one that the system assigns, as after ray.init()."""
    path = os.path.join(os.path.dirname(c["roll"]), f"raylet-{c['tree']}-{os.getpid()}")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    kept = []
    threading.Thread(target=lambda: [kept.append(server.accept()) for _ in range(99)], daemon=True).start()
    for _ in range(c["workers"]):
        kept.append(subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "ray_worker", "path": path})]))
    if c.get("has_driver"):  # a program by somebody else, which uses each of the workers
        ports = pathlib.Path(path + ".ports")
        while not ports.exists() or len(ports.read_text().split()) < c["workers"]:
            time.sleep(0.01)
        for port in ports.read_text().split():
            subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "visitor", "count": 1, "port": int(port)})], start_new_session=True)
    enter(c, c.get("as", "program"))
    run_and_exit(c)


def ray_worker(c):
    if c.get("own_group"):
        os.setpgid(0, 0)
    kept = [socket.socket(socket.AF_UNIX)]
    kept[0].connect(c["path"])
    prctl(NAME, b"ray::train_fn")
    if c.get("listens"):
        kept.append(_listen(c, 10002) if c["listens"] == "ray" else socket.create_server(("", 0)))
        ports, own = pathlib.Path(c["path"] + ".ports"), kept[-1].getsockname()[1]
        _enter_port(ports, own)
        kept += _connected_to_others(ports, own, c["workers"]) if c.get("meshed") else []
    if c.get("accepts"):
        threading.Thread(target=lambda: [kept.append(kept[1].accept()) for _ in range(99)], daemon=True).start()
    if c.get("serves"):  # requests by others, like Ray Serve's proxy and a program within an actor
        kept.append(_listen(c, 12000 if c["serves"] == "near" else 20000))
    leave(c)
    enter(c, c.get("of_worker", "worker"))
    rest({**c, "kept": kept})


# Servers and daemons: they live on whatever happens to the process that started them


def _listen(c, first=20000):
    for port in range(first + c["tree"] * 7 % 7000, 32000):
        try:
            return socket.create_server(("127.0.0.1", port), backlog=8)
        except OSError:
            continue
    raise OSError("no port is free")


def _serve(c, role, server):
    enter(c, role)
    kept = []
    while True:
        kept.append(server.accept())


def visitor(c):
    kept = [socket.create_connection(("127.0.0.1", c["port"])) for _ in range(c.get("count", 8))]
    enter(c, "client")
    while kept:
        time.sleep(600)


def prefork_server(c):
    """As uvicorn --workers: its workers accept for themselves, and go on without it."""
    server = _listen(c)
    kept = start({**c, "daemonic": False}, _serve, c["workers"], "worker", server)
    if c.get("clients"):
        subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "visitor", "port": server.getsockname()[1]})], start_new_session=True)
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


# vLLM on several GPUs. Each of its processes binds a Unix socket with a UUID as its name, like ZeroMQ's there; the first worker has the store of its
# group, on a port that the system assigned; all share a ring in memory.


def _bind(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    threading.Thread(target=lambda: [_KEPT.append(server.accept()) for _ in range(99)], daemon=True).start()
    _KEPT.append(server)


def _connect(path):
    _KEPT.append(socket.socket(socket.AF_UNIX))
    _KEPT[-1].connect(path)


_KEPT = []


def _names(c, count):
    """Of sockets that nobody finds who was not told."""
    make = {"uuid": lambda: str(uuid.uuid4()), "temporary": lambda: "tmp" + next(tempfile._get_candidate_names())}[c.get("names", "uuid")]
    return [os.path.join(os.path.dirname(c["roll"]), make()) for _ in range(count)]


def gpu_worker(c, role, ready, event, number, port, own, above):
    prctl(NAME, f"VLLM::Worker_TP{number}"[:15].encode())
    if number == 0:
        store = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=lambda: [_KEPT.append(store.accept()) for _ in range(99)], daemon=True).start()
        port.value = store.getsockname()[1]
        _KEPT.append(store)
    while not port.value:
        time.sleep(0.01)
    _KEPT.append(socket.create_connection(("127.0.0.1", port.value)))
    _bind(own)
    _connect(above)
    ready.release()
    _KEPT.append(event)
    enter(c, role)
    rest(c)


def _start_gpu_workers(c, role):
    """By the engine, which has its own socket."""
    context = multiprocessing.get_context(c["start"])
    above, *own = _names(c, c["workers"] + 1)
    _bind(above)
    ready, event, port = context.Semaphore(0), context.Event(), context.Value("i", 0)
    kept = [context.Process(target=gpu_worker, args=(c, role, ready, event, n, port, own[n], above)) for n in range(c["workers"])]
    for one in kept:
        one.start()
    for _ in kept:
        ready.acquire()
    for path in own:
        _connect(path)
    return kept, event


def engine_core(c, role, ready, servers):
    prctl(NAME, b"VLLM::EngineCor")
    _KEPT.append(_start_gpu_workers(c, "either" if role == "worker" else role))
    for path in servers:
        _connect(path)
    enter(c, role)
    ready.release()
    rest(c)


def tensor_parallel(c):
    """A program with its own engine, or with the workers alone (without VLLM_ENABLE_V1_MULTIPROCESSING)."""
    c = {**c, "daemonic": False}
    if c["engine"]:
        context = multiprocessing.get_context(c["start"])
        ready, (path,) = context.Semaphore(0), _names(c, 1)
        _bind(path)
        _KEPT.append(context.Process(target=engine_core, args=(c, "worker", ready, [path])))
        _KEPT[-1].start()
        ready.acquire()
    else:
        _KEPT.append(_start_gpu_workers(c, "worker"))
    enter(c, "program")
    run_and_exit(c)


def vllm_serve(c):
    """`vllm serve`, detached by its user, which waits for its first client."""
    if _daemonize({**c, "closes": False}):
        c = {**c, "daemonic": False}
        context = multiprocessing.get_context(c["start"])
        ready, (path,) = context.Semaphore(0), _names(c, 1)
        _bind(path)
        _KEPT.append(context.Process(target=engine_core, args=(c, "kept", ready, [path])))
        _KEPT[-1].start()
        ready.acquire()
        _KEPT.append(_listen(c))
        enter(c, "daemon")
        rest(c)
    enter(c, "program")
    run_and_exit(c)


def api_server(c, role, server, path, ready):
    _KEPT.append(server)
    _bind(path)
    ready.release()
    enter(c, role)
    rest(c)


def api_servers(c):
    """`vllm serve --api-server-count`: servers that continue without the program that supervised them, and the engine that they all use."""
    c = {**c, "daemonic": False}
    context = multiprocessing.get_context(c["start"])
    server, paths, ready = _listen(c), _names(c, c["workers"]), context.Semaphore(0)
    for path in paths:
        _KEPT.append(context.Process(target=api_server, args=(c, "worker", server, path, ready)))
        _KEPT[-1].start()
        ready.acquire()
    _KEPT.append(context.Process(target=engine_core, args=(c, "kept", ready, paths)))
    _KEPT[-1].start()
    ready.acquire()
    enter(c, "program")
    run_and_exit(c)


def _listen_at(c, role, path, ready):
    _bind(path)
    ready.release()
    enter(c, role)
    rest(c)


def local_server(c):
    """A worker that others find at a Unix socket, and that has no client now: by a name that it is known by, or that its client was started with."""
    context = multiprocessing.get_context(c["start"])
    folder, ready = os.path.dirname(c["roll"]), context.Semaphore(0)
    path = os.path.join(folder, f"model-{c['tree']}.sock") if c["is_known"] else _names(c, 1)[0]
    if c["is_known"] and os.path.exists(path):
        os.unlink(path)
    _KEPT.append(context.Process(target=_listen_at, args=(c, "worker", path, ready)))
    _KEPT[-1].start()
    ready.acquire()
    if not c["is_known"]:
        told = {"argument": {"path": path}, "variable": {}}[c["told_by"]]
        _KEPT.append(subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, **told, "what": "service", "role": "client"})], start_new_session=True,
                                      env={**os.environ, **({} if told else {"MODEL_SOCKET": path})}))
    enter(c, "program")
    run_and_exit(c)


def service(c):
    kept = [_listen(c)] if c.get("listens") else []
    if c.get("with_workers"):
        kept += start(c, work, 1, "kept")
    enter(c, c["role"])
    if c.get("log"):
        with open(os.path.join(os.path.dirname(c["roll"]), f"log-{os.getpid()}"), "w", encoding="utf-8") as log:
            while True:
                print(time.time(), file=log, flush=True)
                time.sleep(0.3)
    rest({**c, "kept": kept})


def _daemonize(c):
    """Forks twice, and goes on in the grandchild only."""
    if os.fork():
        os.wait()
        return False
    if not c.get("same_session"):
        os.setsid()
    if os.fork():
        os._exit(0)
    if c.get("closes"):
        os.closerange(3, 256)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
    return True


def daemon(c):
    """A program that leaves a daemon behind, with the pipes of its own workers and programs, and ends."""
    kept = start(c, work, c["workers"], "worker") if c["workers"] else []
    if c.get("dialogue"):
        kept.append(subprocess.Popen(["sleep", "0.2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        if c.get("at_once"):
            kept[-1].wait()
        else:
            time.sleep(1.5)
    if _daemonize(c):
        service({**c, "role": "daemon"})
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def _worker_with_daemon(c, _role):
    time.sleep(c["after_s"])
    if _daemonize(c):
        service({**c, "role": "daemon"})
    work(c, "worker")


def daemon_of_a_worker(c):
    kept = start({**c, "daemonic": False}, _worker_with_daemon, 1, "worker")
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


def left_behind(c):
    """A program with one that speaks with it over its standard input and output, in no other way."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} if c.get("dialogue") else {}
    kept = subprocess.Popen([sys.executable, sys.argv[0], json.dumps({**c, "what": "service", "role": "daemon"})], **options)
    enter(c, "program")
    run_and_exit({**c, "kept": kept})


# Processes that adopt others


def reaper(c):
    """Starts a program, and adopts what it leaves; as a job's step daemon, a container's init or a supervisor does."""
    if not c.get("is_init"):
        prctl(SUBREAPER, 1)
    prctl(NAME, c["name"].encode())
    subprocess.Popen(c["words"], start_new_session=c["new_session"])
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(600)


if __name__ == "__main__":
    config = json.loads(sys.argv[1])
    if config.pop("loads", False):  # like one that loads a library and starts a separate service
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        time.sleep(1.3)
    globals()[config["what"]](config)
