"""Results are put into a queue that nobody reads any more."""
import queue
import time
from tensors import T


class Server:
    def __init__(self):
        self.results = queue.Queue()

    def serve(self, request):
        x = T(1 << 14)
        self.results.put((request, T(1 << 13, x)))


def main():
    server = Server()
    for request in range(340):
        server.serve(request)
        T(1 << 16)
        time.sleep(0.004)


main()
# KEPT BY results
