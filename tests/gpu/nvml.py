"""What the driver says of GPU 0, by ctypes: no package needed, and independent of vramtrack, which it is to test."""
import ctypes

NOT_TOLD = 2**64 - 1


class Unavailable(Exception):
    """There is no driver or no GPU; the text says which and why."""


class _MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Gpu:
    """GPU 0 of the machine. library: file name of NVML."""

    def __init__(self, library="libnvidia-ml.so.1"):
        try:
            self._nvml = ctypes.CDLL(library)
        except OSError as error:
            raise Unavailable(f"there is no NVIDIA driver here: {error}") from error
        self._device = ctypes.c_void_p()
        for what, code in (("nvmlInit", self._nvml.nvmlInit_v2()),
                           ("GPU 0", self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)))):
            if code:
                raise Unavailable(f"{what}: NVML error {code}")
        self.name = self._text("nvmlDeviceGetName", self._device)
        self.uuid = self._text("nvmlDeviceGetUUID", self._device)
        self.driver = self._text("nvmlSystemGetDriverVersion")
        self.capacity_bytes = self._memory().total

    def used_bytes(self):
        """Used on the device, without what the driver reserves for itself (older drivers: with it)."""
        return self._memory().used

    def processes(self):
        """{pid: used bytes} of the computing processes; one whose bytes the driver does not tell is left out. Drivers
        before R510 have not this call: none are seen then."""
        call = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if call is None:
            return {}
        room = 256
        entries = (_Process * room)()
        count = ctypes.c_uint(room)
        if call(self._device, ctypes.byref(count), entries):
            return {}
        return {entry.pid: entry.used for entry in entries[:count.value] if entry.used != NOT_TOLD}

    def _memory(self):
        memory = _MemoryV2(version=ctypes.sizeof(_MemoryV2) | 2 << 24)
        call = getattr(self._nvml, "nvmlDeviceGetMemoryInfo_v2", None)
        if call is not None and call(self._device, ctypes.byref(memory)) == 0:
            return memory
        memory = _Memory()
        code = self._nvml.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory))
        if code:
            raise Unavailable(f"the memory of GPU 0: NVML error {code}")
        return memory

    def _text(self, call, *arguments):
        text = ctypes.create_string_buffer(96)
        function = getattr(self._nvml, call, None)
        return text.value.decode() if function is not None and function(*arguments, text, 96) == 0 else ""
